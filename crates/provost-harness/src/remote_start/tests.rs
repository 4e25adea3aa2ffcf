use super::{checked, copy_name};

#[test]
fn addresses_with_logins_and_programs_are_refused() {
    for url in
        ["https://github.com/a/b.git", "ssh://git@host/a", "git@host:a/b", "/srv/a.git", "file:///srv/a"]
    {
        assert_eq!(checked(url), Ok(()), "{url}");
    }
    for url in ["https://me:secret@host/a", "https://token@host/a", "ssh://me:secret@host/a", "ext::sh -c x"]
    {
        assert!(checked(url).is_err(), "{url}");
    }
    for url in ["--upload-pack=x", "foo://host/a", "https://host/a\n"] {
        assert!(checked(url).is_err(), "{url}");
    }
}

#[test]
fn each_address_has_a_copy_of_its_own() {
    let name = copy_name("git@host:team/shop.git");
    assert!(name.starts_with("repository-shop-"), "{name}");
    assert_ne!(name, copy_name("git@other:team/shop.git"));
    assert!(copy_name("../..").starts_with("repository--"));
}
