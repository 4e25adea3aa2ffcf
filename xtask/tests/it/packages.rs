//! What each crate needs to be published, and that the oldest supported compiler is the one that is tested with.

use std::fs;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent").to_owned()
}

fn read(path: &Path) -> toml::Table {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_crate_says_what_it_is() {
    for entry in fs::read_dir(workspace().join("crates")).expect("the crates") {
        let folder = entry.expect("an entry").path();
        let manifest = read(&folder.join("Cargo.toml"));
        let package = manifest["package"].as_table().expect("a package");
        let name = package["name"].as_str().expect("a name");
        assert_eq!(Some(name), folder.file_name().and_then(|name| name.to_str()));
        for field in ["description", "readme", "version", "license", "rust-version", "keywords", "categories"]
        {
            assert!(package.contains_key(field), "{name} has no {field}");
        }
        assert!(!package.contains_key("publish"), "{name} limits where it is published");
        let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
        assert!(readme.starts_with(&format!("# {name}\n\n")), "{name} has no README.md with its name");
    }
}

#[test]
fn crates_depend_on_each_other_by_version() {
    let manifest = read(&workspace().join("Cargo.toml"));
    let version = &manifest["workspace"]["package"]["version"];
    let dependencies = manifest["workspace"]["dependencies"].as_table().expect("dependencies");
    let own = dependencies.iter().filter(|(name, _)| name.starts_with("provost")).collect::<Vec<_>>();
    assert!(own.len() > 10);
    for (name, dependency) in own {
        assert_eq!(dependency.get("version"), Some(version), "{name}");
    }
}

#[test]
fn the_oldest_supported_compiler_is_the_one_that_is_tested_with() {
    let manifest = read(&workspace().join("Cargo.toml"));
    let oldest = manifest["workspace"]["package"]["rust-version"].as_str().expect("a version");
    let toolchain = read(&workspace().join("rust-toolchain.toml"));
    let tested = toolchain["toolchain"]["channel"].as_str().expect("a version");
    assert_eq!(tested, format!("{oldest}.0"));
}
