// swift-tools-version: 6.2
import PackageDescription

/// The service's transport alone (module MicroHTTP: reactors, detached streams, shards), for the comparison with a bare
/// `send` loop: no tokens, no database, no routing by audience.
let package = Package(
    name: "BenchmarkTransport",
    dependencies: [.package(name: "bellhop", path: "../..")],
    targets: [
        .executableTarget(
            name: "TransportFanout",
            dependencies: [.product(name: "MicroHTTP", package: "bellhop")],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
                .treatAllWarnings(as: .error),
            ])
    ],
    swiftLanguageModes: [.v6]
)
