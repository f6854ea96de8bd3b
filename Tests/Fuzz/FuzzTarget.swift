import Glibc

/// Reads an input and stops the process if an invariant is violated. A crash is the other kind of failure.
typealias FuzzTarget = @Sendable (_ input: [UInt8]) -> Void

/// Stops the process if the condition is false, so that libFuzzer stores the input.
func require(_ condition: Bool, _ what: @autoclosure () -> String, line: Int = #line, file: String = #fileID) {
    guard !condition else { return }
    fatalError("\(file):\(line): \(what())")
}

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<Int32>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ runOne: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

/// libFuzzer's callback takes no context.
nonisolated(unsafe) private var present: FuzzTarget = { _ in }

/// Hands control to libFuzzer. Its own `main` is not linked, because Swift provides one.
func runFuzzer(_ target: @escaping FuzzTarget, arguments: [String]) -> Never {
    present = target
    // libFuzzer reads the arguments for the lifetime of the process, so they are never freed.
    var list = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: arguments.count + 1)
    for (index, argument) in arguments.enumerated() { list[index] = strdup(argument) }
    list[arguments.count] = nil
    var count = Int32(arguments.count)
    exit(
        runDriver(&count, &list) { bytes, count in
            present(Array(UnsafeBufferPointer(start: bytes, count: count)))
            return 0
        })
}
