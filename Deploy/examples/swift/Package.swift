// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "example",
    platforms: [.iOS(.v16), .macOS(.v13)],
    dependencies: [
        // A real app names the repository's address here, with a version. Without the trait of the service, none of the
        // packages that the service needs is fetched.
        .package(name: "bellhop", path: "../../..", traits: [])
    ],
    targets: [
        .executableTarget(
            name: "example", dependencies: [.product(name: "BellhopClient", package: "bellhop")],
            swiftSettings: [.treatAllWarnings(as: .error)])
    ]
)
