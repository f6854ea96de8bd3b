// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "bellhop",
    products: [
        .executable(name: "bellhop", targets: ["bellhop"]),
        .library(name: "BellhopClient", targets: ["BellhopClient"]),
        .library(name: "MicroHTTP", targets: ["MicroHTTP"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", .upToNextMinor(from: "1.8.2")),
        .package(url: "https://github.com/apple/swift-crypto", .upToNextMinor(from: "4.5.2")),
        .package(url: "https://github.com/apple/swift-log", .upToNextMinor(from: "1.16.2")),
        .package(url: "https://github.com/apple/swift-system", .upToNextMinor(from: "1.8.1")),
        .package(
            url: "https://github.com/apple/swift-configuration", .upToNextMinor(from: "1.4.0"),
            traits: ["YAML", "CommandLineArguments"]),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", .upToNextMinor(from: "2.13.0")),
        .package(url: "https://github.com/vapor/jwt-kit", .upToNextMinor(from: "5.7.1")),
        .package(url: "https://github.com/jpsim/Yams", .upToNextMinor(from: "6.2.2")),
    ],
    targets: [
        .systemLibrary(name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .target(name: "Threads", swiftSettings: strict),
        .target(name: "MicroHTTP", dependencies: ["CMicroHTTPD", "Threads"], swiftSettings: strict),
        .target(
            name: "Database",
            dependencies: [
                "CSQLite", "CPostgreSQL", "Threads", "Visibility", "Values",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: strict),
        .target(name: "Visibility", swiftSettings: strict),
        .target(name: "Values", swiftSettings: strict),
        .target(name: "Rows", dependencies: ["Values", "Visibility"], swiftSettings: strict),
        .target(name: "Domain", dependencies: ["Values", "Rows", "Visibility"], swiftSettings: strict),
        .target(name: "Realtime", dependencies: ["Values"], swiftSettings: strict),
        .target(
            name: "Service",
            dependencies: [
                "MicroHTTP", "Database", "Realtime", "Threads", "Values", "Rows", "Domain", "Visibility",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "Yams", package: "Yams"),
            ],
            resources: [
                .embedInCode("Features/Console/console.html"), .embedInCode("openapi.yaml"),
                .embedInCode("Configuration/school.yaml"), .embedInCode("Configuration/posts.yaml"),
                .embedInCode("Configuration/todo.yaml"),
            ],
            swiftSettings: strict),
        .target(name: "BellhopClient", dependencies: ["Threads"], swiftSettings: strict),
        .executableTarget(
            name: "bellhop",
            dependencies: [
                "Service", "BellhopClient", "Rows", "Values",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "Yams", package: "Yams"),
            ],
            swiftSettings: strict),
        // A shop that is simulated: what the wait estimate is tried on, by its tests and as a command.
        .target(
            name: "QueueSimulation", dependencies: ["Values", "Domain"], path: "Benchmarks/Simulation/Shop",
            swiftSettings: strict),
        .executableTarget(
            name: "queue-simulation", dependencies: ["Values", "Domain", "QueueSimulation"],
            path: "Benchmarks/Simulation/Command", swiftSettings: strict),
        .testTarget(name: "BellhopClientTests", dependencies: ["BellhopClient", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "DatabaseTests", dependencies: ["Database", "PostgresServer", "TestSupport", "Values", "Visibility"],
            swiftSettings: strict),
        .testTarget(
            name: "DomainTests",
            dependencies: [
                "Values", "Rows", "Domain", "PostgresServer", "QueueSimulation", "TestSupport", "Visibility",
                .product(name: "Yams", package: "Yams"),
            ],
            swiftSettings: strict),
        // What tests of all modules need: seeded numbers, directories, waiting, bare TCP connections, processes.
        .systemLibrary(name: "CSpawn", path: "Tests/CSpawn"),
        .target(name: "TestSupport", dependencies: ["CSpawn"], path: "Tests/TestSupport", swiftSettings: strict),
        // The PostgreSQL that tests run on.
        .target(
            name: "PostgresServer", dependencies: ["CPostgreSQL"], path: "Tests/PostgresServer", swiftSettings: strict),
        .testTarget(
            name: "MicroHTTPTests", dependencies: ["MicroHTTP", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "ThreadsTests", dependencies: ["Threads"], swiftSettings: strict),
        // The house's style, as a test.
        .testTarget(name: "TidyTests", swiftSettings: strict),
        .testTarget(
            name: "RealtimeTests", dependencies: ["Realtime", "TestSupport", "Values"], swiftSettings: strict),
        .testTarget(
            name: "ServiceTests",
            dependencies: [
                "Service", "BellhopClient", "MicroHTTP", "Database", "Realtime", "Threads", "Values", "Rows", "Domain",
                "Visibility", "PostgresServer", "TestSupport",
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "JWTKit", package: "jwt-kit"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Yams", package: "Yams"),
            ],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)

// `.ci/fuzz` alone sets it: the target links only with libFuzzer's runtime.
if Context.environment["BELLHOP_FUZZ"] != nil {
    package.targets.append(
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                "Service", "MicroHTTP", "Rows", "Values",
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/Fuzz", exclude: ["Corpus"], swiftSettings: strict))
}
