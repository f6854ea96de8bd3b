// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// Returns a dependency of the service on another package. Apps disable the trait `Service` and fetch none of these
/// packages.
func outside(_ product: String, _ package: String) -> Target.Dependency {
    .product(name: product, package: package, condition: .when(traits: ["Service"]))
}

let package = Package(
    name: "bellhop",
    // The minimum versions are for apps, which build only BellhopClient: `Duration` and `ContinuousClock` require
    // them. The service runs on Linux.
    platforms: [.iOS(.v16), .macCatalyst(.v16), .macOS(.v13), .tvOS(.v16), .visionOS(.v1)],
    products: [
        .executable(name: "bellhop", targets: ["bellhop"]),
        .library(name: "BellhopClient", targets: ["BellhopClient"]),
        .library(name: "MicroHTTP", targets: ["MicroHTTP"]),
    ],
    traits: [
        .trait(name: "Service", description: "All but BellhopClient, which stands on no other package."),
        .default(enabledTraits: ["Service"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", .upToNextMinor(from: "1.8.2")),
        .package(url: "https://github.com/apple/swift-log", .upToNextMinor(from: "1.16.2")),
        .package(url: "https://github.com/apple/swift-system", .upToNextMinor(from: "1.8.1")),
        .package(
            url: "https://github.com/apple/swift-configuration", .upToNextMinor(from: "1.4.0"),
            traits: ["YAML", "CommandLineArguments"]),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", .upToNextMinor(from: "2.13.0")),
        .package(url: "https://github.com/jpsim/Yams", .upToNextMinor(from: "6.2.2")),
    ],
    targets: [
        .systemLibrary(name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        // Pages, scripts, the API contract and the shipped tables, embedded in the binary.
        .target(name: "CResources"),
        .target(name: "Threads", swiftSettings: strict),
        .target(name: "Cryptography", dependencies: ["CCrypto"], swiftSettings: strict),
        .target(name: "MicroHTTP", dependencies: ["CMicroHTTPD", "Threads"], swiftSettings: strict),
        .target(name: "OutboundHTTP", dependencies: ["CCurl", "Threads", "Values"], swiftSettings: strict),
        .target(
            name: "Push", dependencies: ["Cryptography", "OutboundHTTP", "Threads", "Values"], swiftSettings: strict),
        .target(
            name: "Database",
            dependencies: ["CSQLite", "CPostgreSQL", "Cryptography", "Threads", "Visibility", "Values"],
            swiftSettings: strict),
        .target(name: "Visibility", swiftSettings: strict),
        .target(name: "Values", swiftSettings: strict),
        .target(name: "Rows", dependencies: ["Values", "Visibility"], swiftSettings: strict),
        .target(name: "Domain", dependencies: ["Values"], swiftSettings: strict),
        .target(name: "Realtime", dependencies: ["Values"], swiftSettings: strict),
        .target(
            name: "Service",
            dependencies: [
                "CResources", "CZlib", "Cryptography", "MicroHTTP", "OutboundHTTP", "Push", "Database", "Realtime",
                "Threads", "Values", "Rows", "Domain", "Visibility",
                outside("Logging", "swift-log"),
                outside("Configuration", "swift-configuration"),
                outside("SystemPackage", "swift-system"),
                outside("Yams", "Yams"),
            ],
            // The files are embedded by CResources.
            exclude: ["Features/ClientLibrary/Files"],
            swiftSettings: strict),
        // Calls and streams: what the commands use. Apps import BellhopClient, which exports it.
        .target(
            name: "BellhopCalls", dependencies: [.target(name: "CCurl", condition: .when(platforms: [.linux]))],
            swiftSettings: strict),
        // The library for apps; it depends on no module of the service.
        .target(name: "BellhopClient", dependencies: ["BellhopCalls"], swiftSettings: strict),
        .executableTarget(
            name: "bellhop",
            dependencies: [
                "Service", "BellhopCalls", "Cryptography", "Database", "Rows", "Values",
                outside("ArgumentParser", "swift-argument-parser"),
                outside("Configuration", "swift-configuration"),
                outside("Logging", "swift-log"),
                outside("SystemPackage", "swift-system"),
                outside("UnixSignals", "swift-service-lifecycle"),
                outside("Yams", "Yams"),
            ],
            swiftSettings: strict),
        // A simulated shop, on which the tests and a command try the wait estimate.
        .target(
            name: "QueueSimulation", dependencies: ["Values", "Domain"], path: "Tests/QueueSimulation/Shop",
            swiftSettings: strict),
        .executableTarget(
            name: "queue-simulation", dependencies: ["Values", "Domain", "QueueSimulation"],
            path: "Tests/QueueSimulation/Command", swiftSettings: strict),
        // The transport without the service, for the benchmark. It is part of every build, so that it cannot become
        // outdated.
        .executableTarget(
            name: "transport-fanout", dependencies: ["MicroHTTP"], path: "Benchmarks/Transport", swiftSettings: strict),
        // An app that tests kill while it writes.
        .executableTarget(
            name: "outbox-writer", dependencies: ["BellhopClient"], path: "Tests/OutboxWriter", swiftSettings: strict),
        .testTarget(
            name: "BellhopClientTests", dependencies: ["BellhopCalls", "BellhopClient", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "DatabaseTests", dependencies: ["Database", "PostgresServer", "TestSupport", "Values", "Visibility"],
            swiftSettings: strict),
        .testTarget(
            name: "DomainTests", dependencies: ["Values", "Domain", "QueueSimulation", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "RowsTests",
            dependencies: [
                "Values", "Rows", "PostgresServer", "TestSupport", "Visibility", outside("Yams", "Yams"),
            ],
            swiftSettings: strict),
        .testTarget(name: "ValuesTests", dependencies: ["Values", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "VisibilityTests", dependencies: ["Visibility", "TestSupport"], swiftSettings: strict),
        // Shared by all test targets: seeded random numbers, directories, waits, raw TCP connections, processes.
        .systemLibrary(name: "CSpawn", path: "Tests/CSpawn"),
        // Counts allocations, for tests of what a request costs.
        .target(name: "CAllocations", path: "Tests/CAllocations"),
        .target(name: "TestSupport", dependencies: ["CSpawn"], path: "Tests/TestSupport", swiftSettings: strict),
        // The PostgreSQL server of the tests.
        .target(
            name: "PostgresServer", dependencies: ["CPostgreSQL"], path: "Tests/PostgresServer", swiftSettings: strict),
        .testTarget(
            name: "MicroHTTPTests", dependencies: ["MicroHTTP", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "PushTests", dependencies: ["Cryptography", "OutboundHTTP", "Push", "TestSupport", "Values"],
            swiftSettings: strict),
        .testTarget(
            name: "OutboundHTTPTests", dependencies: ["OutboundHTTP", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "CryptographyTests", dependencies: ["Cryptography", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "ThreadsTests", dependencies: ["TestSupport", "Threads"], swiftSettings: strict),
        // The style rules, as tests.
        .testTarget(name: "TidyTests", dependencies: ["TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "RealtimeTests", dependencies: ["Realtime", "TestSupport", "Values"], swiftSettings: strict),
        .testTarget(
            name: "ServiceTests",
            dependencies: [
                "CAllocations", "CCrypto", "Service", "BellhopCalls", "BellhopClient", "Cryptography", "MicroHTTP",
                "OutboundHTTP",
                "Database", "Realtime",
                "Threads", "Values", "Rows", "Domain", "Visibility", "PostgresServer", "TestSupport",
                outside("Configuration", "swift-configuration"),
                outside("Logging", "swift-log"),
                outside("Yams", "Yams"),
            ],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)

// Only `.ci/fuzz` sets this variable, because the target links only with libFuzzer's runtime.
if Context.environment["BELLHOP_FUZZ"] != nil {
    package.targets.append(
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                "Service", "Cryptography", "Domain", "MicroHTTP", "OutboundHTTP", "Push", "Rows", "Values",
                outside("Configuration", "swift-configuration"),
                outside("Logging", "swift-log"),
            ],
            path: "Tests/Fuzz", exclude: ["Corpus"], swiftSettings: strict))
}

// `BELLHOP_TESTS` lists the test targets to build, separated by commas. Building a target takes up to a minute, and
// often one of them is enough to test a change. ThreadSanitizer runs only on targets with several threads.
if let wanted = Context.environment["BELLHOP_TESTS"]?.split(separator: ",").map(String.init) {
    package.targets.removeAll { $0.type == .test && !wanted.contains($0.name) }
}
