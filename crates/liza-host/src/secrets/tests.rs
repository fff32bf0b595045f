use super::*;

fn mask(text: &str) -> Cow<'_, str> {
    Masker::default().mask(text)
}

/// Built at run time, so that no scanner of this repository takes them for real.
fn fake(prefix: &str, length: usize) -> String {
    let body: String = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0z".chars().cycle().take(length).collect();
    format!("{prefix}{body}")
}

/// Covers: AG-10
#[test]
fn keys_of_known_shapes_are_masked_and_keep_their_prefix() {
    let keys = [
        ("sk-ant-", 95),
        ("sk-", 48),
        ("sk-proj-", 60),
        ("sk_live_", 24),
        ("sk_test_", 24),
        ("rk_live_", 24),
        ("ghp_", 36),
        ("gho_", 36),
        ("ghu_", 36),
        ("ghs_", 36),
        ("ghr_", 36),
        ("github_pat_", 82),
        ("glpat-", 20),
        ("AIza", 35),
        ("ya29.", 60),
        ("xoxa-", 40),
        ("xoxb-", 40),
        ("xoxp-", 40),
        ("xoxr-", 40),
        ("xoxs-", 40),
        ("xapp-", 40),
        ("hf_", 34),
        ("npm_", 36),
    ];
    for (prefix, length) in keys {
        let key = fake(prefix, length);
        for text in [
            format!("key is {key}."),
            format!("{{\"content\":\"line\\n{key}\\nmore\"}}"),
            format!("KEY={key}"),
            key.clone(),
        ] {
            let masked = mask(&text);
            assert!(!masked.contains(&key[prefix.len() + 8..]), "{masked}");
            assert!(masked.contains(MASK), "{masked}");
            assert_eq!(mask(&masked), masked, "masking twice changes nothing");
        }
    }
    for prefix in ["AKIA", "ASIA"] {
        let id = format!("{prefix}{}", "ABCD1234EFGH5678");
        assert_eq!(mask(&format!("id {id},")), format!("id {prefix}[masked],"));
    }
    let anthropic = "an-ordinary-letter-only-body";
    assert_eq!(
        mask(&format!("sk-ant-{anthropic}")),
        "sk-ant-[masked]",
        "the more specific prefix needs no digit"
    );
}

#[test]
fn tokens_headers_and_passwords_in_addresses_are_masked() {
    let jwt = format!("{}.{}.{}", fake("eyJ", 30), fake("eyJ", 60), fake("", 43));
    assert_eq!(mask(&format!("token {jwt} end")), "token [masked] end");
    let cases = [
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer [masked]"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic [masked]"),
        (r#"{"Authorization":"Bearer abcdefgh1234"}"#, r#"{"Authorization":"Bearer [masked]"}"#),
        (r#"-H 'x-api-key: 0123456789abcdef' -d"#, r#"-H 'x-api-key: [masked]' -d"#),
        ("X-Goog-Api-Key: 0123456789abcdef", "X-Goog-Api-Key: [masked]"),
        ("PRIVATE-TOKEN: 0123456789abcdef", "PRIVATE-TOKEN: [masked]"),
        ("Proxy-Authorization: Basic dXNlcjpwYXNz", "Proxy-Authorization: Basic [masked]"),
        ("authorization: token abcdefgh12345678", "authorization: token [masked]"),
        ("curl -H Bearer\u{20}abcdefghijklmnopqrstu1", "curl -H Bearer [masked]"),
        ("https://bob:hunter2@example.org/x", "https://bob:[masked]@example.org/x"),
        ("https://x-access-token:abc@github.com", "https://x-access-token:[masked]@github.com"),
        ("DB_PASSWORD=correct-horse", "DB_PASSWORD=[masked]"),
        ("export API_TOKEN=\"abc/def+ghi=\"", "export API_TOKEN=\"[masked]\""),
    ];
    for (text, masked) in cases {
        assert_eq!(mask(text), masked);
        assert_eq!(mask(masked), masked);
    }
    for word in ["KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"] {
        assert_eq!(mask(&format!("MY_{word}=correct-horse")), format!("MY_{word}=[masked]"));
    }
}

fn pem(margin: &str) -> String {
    let body = [fake("MII", 61), fake("", 64), "Ab3=".to_owned()];
    let lines: Vec<String> = ["-----BEGIN RSA PRIVATE KEY-----".to_owned()]
        .into_iter()
        .chain(body)
        .chain(["-----END RSA PRIVATE KEY-----".to_owned(), "after the key".to_owned()])
        .map(|line| format!("{margin}{line}\n"))
        .collect();
    lines.concat()
}

#[test]
fn private_keys_are_masked_line_by_line_and_in_json() {
    for margin in ["", "+", "  12\t", "> "] {
        let masked = mask(&pem(margin)).into_owned();
        assert!(!masked.contains("aB3dE5gH") && !masked.contains("Ab3="), "{margin:?}: {masked}");
        assert!(masked.ends_with(&format!("{margin}after the key\n")), "{margin:?}: {masked}");
        assert!(masked.contains("END RSA PRIVATE KEY"), "{masked}");
        assert_eq!(mask(&masked), masked);
    }
    let json = serde_json::Value::from(pem("")).to_string();
    let masked = mask(&json);
    assert!(!masked.contains("aB3dE5gH") && masked.contains("after the key"), "{masked}");
    let talk = "look for -----BEGIN PRIVATE KEY-----\nand then go on as usual\n";
    assert_eq!(mask(talk), talk);
}

#[test]
fn values_of_secret_variables_are_masked_everywhere() {
    let environment = [
        ("MY_API_KEY", "s3cr\"t/value"),
        ("DEPLOY_TOKEN", "longer-s3cret-value-2"),
        ("OTHER_SECRET", "longer-s3cret"),
        ("SHORT_TOKEN", "abc"),
        ("PATH", "/usr/bin:/bin"),
        ("KEYBOARD", "dvorak-layout"),
        ("MAX_TOKENS", "1234567890"),
    ];
    let masker = Masker::new(environment);
    let text = "a s3cr\"t/value b {\"x\":\"s3cr\\\"t/value\"} longer-s3cret-value-2 abc /usr/bin:/bin dvorak-layout 1234567890";
    let expected = "a [masked] b {\"x\":\"[masked]\"} [masked] abc /usr/bin:/bin dvorak-layout 1234567890";
    assert_eq!(masker.mask(text), expected);
}

#[test]
fn ordinary_text_does_not_change() {
    let ordinary = [
        "commit a1b2c3d4e5f60718293a4b5c6d7e8f9012345678",
        "index 83db48f..bf269f4 100644",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "task-1 risk-assessment-of-the-very-long-branch-name-2 desk-lamp-with-a-long-name-12345",
        "sk-learn-style-estimators-are-documented-here",
        "https://example.org:8080/a:b@c?token=x git@github.com:owner/repo.git ssh://git@example.org/x",
        "MAX_TOKENS=4096 TOKEN_LIMIT=123456789 API_KEY=$OTHER_KEY_NAME API_KEY=${SECRET_NAME} KEY=short",
        "let token = parse_token(input)?; if key == expected_key_value {}",
        "The Authorization header is missing. Bearer authentication is required here.",
        "2027-01-15T08:00:00Z 550e8400-e29b-41d4-a716-446655440000",
        "-----BEGIN CERTIFICATE-----",
        "eyJ is how JSON in base64 begins",
        "ünïcödé → ✓ 漢字",
    ];
    for text in ordinary {
        assert_eq!(mask(text), text);
        assert!(matches!(mask(text), Cow::Borrowed(_)));
    }
}

#[test]
fn a_stream_in_pieces_of_any_size_is_masked_the_same() {
    let text = format!("one {} two\n{}three é DB_PASSWORD=correct-horse", fake("ghp_", 36), pem(""));
    let whole = mask(&text).into_owned();
    for cut in 0..=text.len() {
        let mut stream = MaskStream::new(Masker::default());
        let mut out = stream.push(&text.as_bytes()[..cut]);
        out.extend(stream.push(&text.as_bytes()[cut..]));
        out.extend(stream.finish());
        assert_eq!(String::from_utf8(out).unwrap(), whole, "cut at {cut}");
    }
}

#[test]
fn a_flood_without_line_breaks_goes_out_and_is_still_masked() {
    let mut stream = MaskStream::new(Masker::default());
    let key = fake("ghp_", 36);
    let flood = format!("{} {}", "x".repeat(LINE_MAX), &key[..20]);
    let mut out = stream.push(flood.as_bytes());
    assert!(out.len() > LINE_MAX, "held back: {}", out.len());
    out.extend(stream.push(&key.as_bytes()[20..]));
    out.extend(stream.finish());
    assert!(out.ends_with(b" ghp_[masked]"));
}

#[test]
fn bytes_that_are_not_text_pass_through() {
    let bytes = [b"a\xff\xfe ghp_".as_slice(), fake("", 36).as_bytes(), b"\n\x80"].concat();
    let mut stream = MaskStream::new(Masker::default());
    let mut out = stream.push(&bytes);
    out.extend(stream.finish());
    assert_eq!(out, b"a\xff\xfe ghp_[masked]\n\x80");
}
