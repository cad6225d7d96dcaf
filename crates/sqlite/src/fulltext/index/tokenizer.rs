//! Tokenizer of the index: the words of stores.

use fetchwell_ranking::lexical::words::{Words, fold_into, words};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Adapter of [`words`] to the index's tokenizer trait.
#[derive(Debug, Clone, Default)]
pub(super) struct StoreTokenizer {
    token: Token,
}

impl Tokenizer for StoreTokenizer {
    type TokenStream<'a> = StoreTokens<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> StoreTokens<'a> {
        self.token.reset();
        StoreTokens { text, words: words(text), token: &mut self.token }
    }
}

#[derive(Debug)]
pub(super) struct StoreTokens<'a> {
    text: &'a str,
    words: Words<'a>,
    token: &'a mut Token,
}

impl TokenStream for StoreTokens<'_> {
    fn advance(&mut self) -> bool {
        let Some(word) = self.words.next() else { return false };
        self.token.offset_from = word.range.start;
        self.token.offset_to = word.range.end;
        self.token.position = word.position;
        self.token.text.clear();
        fold_into(self.text.get(word.range).unwrap_or_default(), &mut self.token.text);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}
