import ArgumentParser
import Service

/// The completion script of a shell, with the settings. The argument parser does not know them: they are read from a
/// catalog at run time. Every command that has the flag `--config` has them too.
struct CompletionScript {
    let text: String

    /// Creates the script that a command line asks for; nil if it asks for something else.
    init?(arguments: [String]) {
        guard arguments.count == 3, arguments[1] == "--generate-completion-script",
            let shell = CompletionShell(rawValue: arguments[2])
        else { return nil }
        let lines = Bellhop.completionScript(for: shell).split(separator: "\n", omittingEmptySubsequences: false)
        text = lines.flatMap { Self.extended(String($0), shell) }.joined(separator: "\n")
    }

    /// Returns the lines that take the place of a line.
    private static func extended(_ line: String, _ shell: CompletionShell) -> [String] {
        switch shell {
        case .bash where line.hasPrefix("    non_repeating_options=(") && line.contains("--config"):
            [line.dropLast() + Settings.catalog.map { " " + $0.flag }.joined() + ")"]
        case .zsh where line.hasPrefix("        '--config["):
            [line] + Settings.catalog.map { "        '\($0.flag)[\(escaped($0.help, shell))]:value:'" }
        case .fish where line.contains("__bellhop_parse_subcommand") && line.contains(" 'config='"):
            [line.replacing(" 'config='", with: " 'config='" + Settings.catalog.map { " '\(name($0))='" }.joined())]
        case .fish where line.hasPrefix("complete ") && line.contains(" -l 'config' "):
            [line] + Settings.catalog.map { completion(of: $0, after: line) }
        default: [line]
        }
    }

    /// Returns fish's completion of a setting for the command that a completion of `--config` is for.
    private static func completion(of key: Settings.Key, after line: String) -> String {
        let condition = line.prefix { $0 != "'" } + "'bellhop' -n '"
        let command = line.split(separator: "\"", omittingEmptySubsequences: false)[1]
        return condition + "__bellhop_should_offer_completions_for_flags_or_options \"\(command)\" \(name(key))' "
            + "-l '\(name(key))' -d '\(escaped(key.help, .fish))' -rfka ''"
    }

    private static func name(_ key: Settings.Key) -> String { String(key.flag.dropFirst(2)) }

    /// Escapes a description for a quoted text; zsh also gives meaning to brackets and colons.
    private static func escaped(_ help: String, _ shell: CompletionShell) -> String {
        let quoted =
            shell == .fish
            ? help.replacing("\\", with: "\\\\").replacing("'", with: "\\'") : help.replacing("'", with: "'\\''")
        guard shell == .zsh else { return quoted }
        return quoted.replacing("[", with: "\\[").replacing("]", with: "\\]").replacing(":", with: "\\:")
    }
}
