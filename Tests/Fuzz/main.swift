import Glibc

// Coverage-guided fuzzing of all code that reads untrusted bytes. `.ci/fuzz` builds it with libFuzzer and
// AddressSanitizer and runs each target. The first argument names the target; the others go to libFuzzer.

let targets: [String: FuzzTarget] = [
    "json": readJSON, "filters": readFilter, "deliveries": readDelivery, "tokens": readToken, "heads": sendHead,
    "log": readLog, "push": readPushAnswer, "webhooks": readWebhookAnswer,
]

guard CommandLine.arguments.count > 1, let target = targets[CommandLine.arguments[1]] else {
    print("The first argument must be one of: \(targets.keys.sorted().joined(separator: ", "))")
    exit(64)
}
runFuzzer(target, arguments: [CommandLine.arguments[0]] + CommandLine.arguments.dropFirst(2))
