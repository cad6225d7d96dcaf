//! The languages of source code and configuration, by the extension or the name of a file.

/// Extensions with their language.
const LANGUAGES: &[(&str, &str)] = &[
    ("adb", "ada"),
    ("asm", "assembly"),
    ("awk", "awk"),
    ("bash", "shell"),
    ("bat", "batch"),
    ("bib", "bibtex"),
    ("c", "c"),
    ("cc", "c++"),
    ("cfg", "ini"),
    ("clj", "clojure"),
    ("cljs", "clojure"),
    ("cmake", "cmake"),
    ("conf", "ini"),
    ("cpp", "c++"),
    ("cs", "c#"),
    ("css", "css"),
    ("cxx", "c++"),
    ("d", "d"),
    ("dart", "dart"),
    ("diff", "diff"),
    ("dockerfile", "dockerfile"),
    ("el", "emacs lisp"),
    ("elm", "elm"),
    ("erl", "erlang"),
    ("ex", "elixir"),
    ("exs", "elixir"),
    ("f90", "fortran"),
    ("fish", "shell"),
    ("fs", "f#"),
    ("go", "go"),
    ("gradle", "gradle"),
    ("graphql", "graphql"),
    ("groovy", "groovy"),
    ("h", "c"),
    ("hcl", "hcl"),
    ("hpp", "c++"),
    ("hs", "haskell"),
    ("ini", "ini"),
    ("java", "java"),
    ("jl", "julia"),
    ("js", "javascript"),
    ("json5", "json"),
    ("jsonc", "json"),
    ("jsx", "javascript"),
    ("kt", "kotlin"),
    ("kts", "kotlin"),
    ("less", "less"),
    ("lisp", "lisp"),
    ("lua", "lua"),
    ("m", "objective-c"),
    ("mjs", "javascript"),
    ("mk", "makefile"),
    ("ml", "ocaml"),
    ("mm", "objective-c"),
    ("nim", "nim"),
    ("nix", "nix"),
    ("pas", "pascal"),
    ("patch", "diff"),
    ("php", "php"),
    ("pl", "perl"),
    ("pm", "perl"),
    ("properties", "properties"),
    ("proto", "protobuf"),
    ("ps1", "powershell"),
    ("py", "python"),
    ("pyi", "python"),
    ("r", "r"),
    ("rb", "ruby"),
    ("rs", "rust"),
    ("s", "assembly"),
    ("sass", "sass"),
    ("scala", "scala"),
    ("scm", "scheme"),
    ("scss", "scss"),
    ("sh", "shell"),
    ("sol", "solidity"),
    ("sql", "sql"),
    ("svelte", "svelte"),
    ("swift", "swift"),
    ("tcl", "tcl"),
    ("tf", "hcl"),
    ("toml", "toml"),
    ("ts", "typescript"),
    ("tsx", "typescript"),
    ("v", "verilog"),
    ("vb", "visual basic"),
    ("vhd", "vhdl"),
    ("vim", "vim script"),
    ("vue", "vue"),
    ("yaml", "yaml"),
    ("yml", "yaml"),
    ("zig", "zig"),
    ("zsh", "shell"),
];

/// Names of files without an extension, in lower case, with their language.
const NAMES: &[(&str, &str)] = &[
    ("dockerfile", "dockerfile"),
    ("gemfile", "ruby"),
    ("jenkinsfile", "groovy"),
    ("justfile", "just"),
    ("makefile", "makefile"),
    ("rakefile", "ruby"),
    ("vagrantfile", "ruby"),
];

/// Returns the language that an extension in lower case stands for.
pub(crate) fn language_of_extension(extension: &str) -> Option<&'static str> {
    LANGUAGES.iter().find(|(known, _)| *known == extension).map(|(_, language)| *language)
}

/// Returns the language of a file by its name: its extension, or the whole name of one without.
pub(crate) fn language_of_name(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let by_name = NAMES.iter().find(|(known, _)| *known == lower).map(|(_, language)| *language);
    by_name.or_else(|| language_of_extension(lower.rsplit_once('.')?.1))
}

/// Returns the language of a script that begins with the path of its interpreter (`#!/usr/bin/env python3`).
pub(crate) fn language_of_script(start: &str) -> Option<&'static str> {
    let line = start.strip_prefix("#!")?.lines().next()?;
    let mut words = line.split_whitespace();
    let path = words.next()?;
    let program = if path.ends_with("/env") { words.find(|word| !word.starts_with('-'))? } else { path };
    let program = program
        .rsplit('/')
        .next()?
        .trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    Some(match program {
        "python" | "pypy" => "python",
        "node" | "nodejs" | "deno" | "bun" => "javascript",
        "perl" => "perl",
        "ruby" => "ruby",
        "php" => "php",
        "Rscript" => "r",
        "awk" | "gawk" => "awk",
        _ => "shell",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_named_by_extension_name_or_interpreter() {
        for (name, expect) in [
            ("a.RS", Some("rust")),
            ("Makefile", Some("makefile")),
            ("Dockerfile", Some("dockerfile")),
            ("a.png", None),
            ("readme", None),
        ] {
            assert_eq!(language_of_name(name), expect, "{name}");
        }
        for (start, expect) in [
            ("#!/usr/bin/env -S python3.11 -u\n", Some("python")),
            ("#!/bin/sh", Some("shell")),
            ("#!", None),
            ("# !/bin/sh", None),
        ] {
            assert_eq!(language_of_script(start), expect, "{start}");
        }
        assert!(LANGUAGES.is_sorted() && NAMES.is_sorted());
    }
}
