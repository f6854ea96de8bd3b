import ArgumentParser
import Foundation
import Values

/// Coloured output to the terminal.
enum Terminal {
    enum Color: String {
        case red = "31"
        case green = "32"
        case yellow = "33"
        case blue = "34"
        case magenta = "35"
        case cyan = "36"
        case faint = "2"
        case bold = "1"
    }

    /// Whether the output is coloured. It is not in files and pipes, or if `NO_COLOR` or a dumb terminal forbids it.
    static let isColored: Bool = {
        let environment = ProcessInfo.processInfo.environment
        return isatty(STDOUT_FILENO) == 1 && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }()

    static func paint(_ text: String, _ color: Color, isColored: Bool = Terminal.isColored) -> String {
        isColored ? "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// Writes one line at once, even into a pipe: a reader of a stream must not wait for a buffer to fill.
    static func line(_ text: String) {
        FileHandle.standardOutput.write(Data((text + "\n").utf8))
    }

    static func note(_ text: String) {
        FileHandle.standardError.write(Data((text + "\n").utf8))
    }

    /// Prints in one line why a command cannot continue, and returns the exit code to throw.
    static func failure(_ text: String, code: Int32 = 1) -> ExitCode {
        note("bellhop: \(text)")
        return ExitCode(code)
    }

    /// Returns text from the network with its control characters made visible, so that an event cannot repaint the
    /// terminal.
    static func safe(_ text: String) -> String { text.withVisibleControls }

    /// The terminal's width, computed as the argument parser does: COLUMNS, else the terminal's own, else 80.
    private static let columns: Int = {
        if let text = ProcessInfo.processInfo.environment["COLUMNS"], let count = Int(text), count > 0 { return count }
        var size = winsize()
        return ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
    }()

    /// Returns the wrapped lines of a text, each indented and shorter than the terminal's width, because the argument
    /// parser breaks lines that fill it.
    ///
    /// - Parameter rest: the indentation of all lines but the first, if it differs.
    static func wrap(_ text: String, indent: Int, rest: Int? = nil, columns: Int = Terminal.columns) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ", omittingEmptySubsequences: false) {
            if let last = lines.last, last.count + 1 + word.count < columns {
                lines[lines.count - 1] += " " + word
            } else {
                let margin = lines.isEmpty ? indent : rest ?? indent
                lines.append(String(repeating: " ", count: margin) + word)
            }
        }
        return lines
    }

    /// Returns rows as columns, each as wide as its widest cell; the last column is not padded.
    static func table(_ header: [String], _ rows: [[String]]) -> String {
        let widths = header.indices.map { column in ([header] + rows).map { $0[column].count }.max() ?? 0 }
        func line(_ cells: [String]) -> String {
            cells.enumerated().map { column, cell in
                column == cells.count - 1
                    ? cell : cell + String(repeating: " ", count: widths[column] - cell.count + 2)
            }.joined()
        }
        return ([paint(line(header), .bold)] + rows.map(line)).joined(separator: "\n")
    }
}
