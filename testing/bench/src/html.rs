//! Texts in HTML and SVG.

/// Escapes a text for HTML, between tags and in quoted attributes. A control character that HTML
/// cannot represent becomes U+FFFD.
pub fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\n' | '\t' => html.push(c),
            c if c.is_control() => html.push('\u{fffd}'),
            c => html.push(c),
        }
    }
    html
}

/// Reading pages back, for tests.
#[cfg(test)]
pub mod read {
    /// Pieces that end tags, attributes, comments or scripts.
    const PIECES: [&str; 22] = [
        "<",
        ">",
        "&",
        "\"",
        "'",
        "`",
        "=",
        "/",
        "</pre>",
        "</text>",
        "</script>",
        "<script>evil()</script>",
        "<!--",
        "-->",
        "]]>",
        "&lt;",
        "&#",
        "\n",
        "\0",
        "\u{2028}",
        " onload=evil() ",
        "é",
    ];

    /// A generator of sufficient quality for this purpose (Knuth's MMIX constants).
    pub struct Random(pub u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).expect("31 bits") % bound
        }

        /// Returns a hostile text, sometimes a very long one.
        pub fn text(&mut self) -> String {
            let pieces = if self.below(50) == 0 { 5_000 } else { 1 + self.below(6) };
            (0..pieces).map(|_| PIECES[self.below(PIECES.len())]).collect()
        }
    }

    /// Returns the tags of a page with the names of their attributes, as a browser reads them,
    /// without their texts.
    pub fn tags(html: &str) -> Vec<String> {
        let (mut found, mut rest) = (Vec::new(), html);
        while let Some(start) = rest.find('<') {
            rest = &rest[start + 1..];
            let (mut tag, mut quote) = (String::new(), None);
            let mut end = rest.len();
            for (place, c) in rest.char_indices() {
                match quote {
                    Some(open) if c == open => quote = None,
                    Some(_) => {}
                    None if c == '>' => {
                        end = place;
                        break;
                    }
                    None if c == '"' || c == '\'' => quote = Some(c),
                    None if c.is_ascii_digit() || c == '.' || c == '-' => {}
                    None => tag.push(c),
                }
            }
            assert!(quote.is_none(), "an attribute ends");
            found.push(tag);
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        found
    }

    /// Returns the text that an escaped text stands for.
    pub fn text(html: &str) -> String {
        let named =
            [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
        let mut text = html.to_owned();
        for (entity, c) in named {
            text = text.replace(entity, c);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::escape;
    use super::read::{Random, tags, text};

    #[test]
    fn texts_and_attributes_end_where_they_should() {
        for seed in 0..2_000 {
            let hostile = Random(seed).text();
            let shown = escape(&hostile);
            let page = format!("<p title=\"{shown}\"><b class='{shown}'>{shown}</b></p>");
            assert_eq!(tags(&page), ["p title=", "b class=", "/b", "/p"], "seed {seed}: {page}");
            assert!(!shown.contains(['<', '>', '"', '\'', '\0']), "seed {seed}: {shown}");
            assert_eq!(text(&shown), hostile.replace('\0', "\u{fffd}"), "seed {seed}");
        }
    }
}
