//! The services of this machine that the person has named in settings: a local model, a proxy, a database.

/// Names of this machine, as they stand before a port.
const HERE: [&str; 4] = ["localhost:", "127.0.0.1:", "[::1]:", "0.0.0.0:"];

/// The ports of addresses of this machine in a text.
pub fn local_ports(text: &str) -> Vec<u16> {
    let mut ports = Vec::new();
    for name in HERE {
        for after in text.split(name).skip(1) {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            ports.extend(after.get(..digits).and_then(|port| port.parse::<u16>().ok()));
        }
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: RO-04
    #[test]
    fn ports_of_this_machine_are_found_in_addresses_and_no_others() {
        let found = |text: &str, ports: &[u16]| assert_eq!(local_ports(text), ports, "{text}");
        found("http://127.0.0.1:11434/v1", &[11434]);
        found("postgres://me:pw@localhost:5432/db?x=http://[::1]:80", &[5432, 80]);
        found(r#"{"url": "http://localhost:99999", "b": "https://models.example.com:443"}"#, &[]);
        found("localhost", &[]);
    }
}
