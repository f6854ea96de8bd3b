import Foundation

/// The folder of the repository, in which tests find fixtures and sources.
public let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
