//! Which hosts and addresses may be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A host that may be reached, as the settings name it: `api.example.com`, `*.example.org:443`, `10.0.0.5:5432`,
/// `[::1]:80`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    name: HostName,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostName {
    Exact(String),
    /// All names below this one, which begins with a dot.
    Below(String),
    Address(IpAddr),
}

/// The ports of a pattern that names none.
const USUAL_PORTS: [u16; 2] = [80, 443];

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "must be a host such as api.example.com, *.example.org:443 or 10.0.0.5:5432 (is `{text}`)"
            )
        };
        let lower = text.trim().to_ascii_lowercase();
        if let Ok(address) = lower.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok(Self { name: HostName::Address(address), port: None });
        }
        let (host, port) = match lower.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse::<u16>().map_err(|_| wrong())?)),
            None => (lower.as_str(), None),
        };
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok(Self { name: HostName::Address(address), port });
        }
        let name = host.strip_prefix("*.").unwrap_or(host).trim_end_matches('.');
        let fits = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if !name.split('.').all(fits) {
            return Err(wrong());
        }
        let is_below = host.starts_with("*.");
        let name =
            if is_below { HostName::Below(format!(".{name}")) } else { HostName::Exact(name.to_owned()) };
        Ok(Self { name, port })
    }
}

impl HostPattern {
    fn has_port(&self, port: u16) -> bool {
        self.port.map_or(USUAL_PORTS.contains(&port), |own| own == port)
    }

    /// Whether it means this host, whatever the port.
    pub(super) fn matches(&self, host: &str) -> bool {
        match &self.name {
            HostName::Exact(name) => name == host,
            HostName::Below(end) => host.len() > end.len() && host.ends_with(end.as_str()),
            HostName::Address(address) => {
                host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|other| other == *address)
            }
        }
    }
}

/// Whether a host, in lower case, and a port are allowed.
pub(super) fn allowing(patterns: &[HostPattern], host: &str, port: u16) -> bool {
    patterns.iter().any(|pattern| pattern.has_port(port) && pattern.matches(host))
}

/// Whether an address is allowed by itself, with this port.
pub(super) fn listed_address(patterns: &[HostPattern], address: IpAddr, port: u16) -> bool {
    let is_it = |pattern: &HostPattern| matches!(&pattern.name, HostName::Address(own) if *own == address);
    patterns.iter().any(|pattern| pattern.has_port(port) && is_it(pattern))
}

/// Whether an address is one of the internet: not of this machine, of a local or private network, of a cloud's
/// metadata service, nor one that stands for such an address.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19));
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped().or_else(|| embedded(address)) {
        return is_public_v4(inner);
    }
    let [first, second, ..] = address.segments();
    let is_documentation = first == 0x2001 && second == 0xdb8;
    // Only this part of the space is given to the internet.
    (first & 0xe000) == 0x2000 && !is_documentation
}

/// The IPv4 address in an IPv6 address: 6to4, Teredo's server, NAT64.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [first, second, third, _, _, _, high, low] = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match (first, second) {
        (0x2002, _) => Some(of(second, third)),
        (0x2001, 0) => Some(of(!high, !low)),
        (0x64, 0xff9b) | (0, 0) => Some(of(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_machines_and_private_networks_are_not_public() {
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "::127.0.0.1",
            "ff02::1",
            "198.18.0.1",
        ];
        for text in private {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_pattern_names_a_host_or_all_below_one() {
        let all =
            ["api.example.com", "*.example.org:8443", "10.0.0.5:5432"].map(|text| text.parse().unwrap());
        for (host, port) in
            [("api.example.com", 443), ("api.example.com", 80), ("a.b.example.org", 8443), ("10.0.0.5", 5432)]
        {
            assert!(allowing(&all, host, port), "{host}:{port}");
        }
        for (host, port) in [
            ("api.example.com", 22),
            ("xapi.example.com", 443),
            ("api.example.com.evil", 443),
            ("example.org", 8443),
            ("evilexample.org", 8443),
            ("a.example.org", 443),
            ("10.0.0.5", 80),
            ("10.0.0.6", 5432),
        ] {
            assert!(!allowing(&all, host, port), "{host}:{port}");
        }
        for wrong in ["", "*", "a b", "http://x", "a:port", "*.*.x", "a..b"] {
            assert!(wrong.parse::<HostPattern>().is_err(), "{wrong}");
        }
    }
}
