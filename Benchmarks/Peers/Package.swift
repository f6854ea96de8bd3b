// swift-tools-version: 6.2
import PackageDescription

/// Servers other than Bellhop that `Benchmarks/run` measures next to it. A separate package: no part of the service may
/// depend on a peer, and a peer that does not build must not stop the service from building.
let package = Package(
    name: "BenchmarkPeers",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(url: "https://github.com/hummingbird-project/hummingbird", exact: "2.28.1"),
        .package(url: "https://github.com/apple/swift-crypto", .upToNextMinor(from: "4.5.2")),
    ],
    targets: [
        .systemLibrary(name: "CSQLitePeer", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .executableTarget(
            name: "HummingbirdPeer",
            dependencies: [
                "CSQLitePeer",
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: [.treatAllWarnings(as: .error)]
        ),
    ],
    swiftLanguageModes: [.v6]
)
