import CMicroHTTPD
import Glibc

// MARK: - Callbacks of libmicrohttpd, all on the reactor's thread

func connectionChanged(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?,
    _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ code: MHD_ConnectionNotificationCode
) {
    guard let context, let handle, let slot else { return }
    let reactor = Unmanaged<Reactor>.fromOpaque(context).takeUnretainedValue()
    if cmhd_is_start(code) != 0 {
        // The reactor's list retains it.
        slot.pointee = Unmanaged.passUnretained(reactor.accepted(handle)).toOpaque()
    } else if let known = slot.pointee {
        slot.pointee = nil
        reactor.closed(Unmanaged<HTTPConnection>.fromOpaque(known).takeUnretainedValue())
    }
}

/// Handles the first sign of a request: its raw target. The returned value is the context of the request from now on:
/// its connection.
func targetRead(
    _ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ handle: OpaquePointer?
) -> UnsafeMutableRawPointer? {
    guard let context, let target, let handle, let known = cmhd_connection_context(handle) else { return nil }
    let reactor = Unmanaged<Reactor>.fromOpaque(context).takeUnretainedValue()
    let length = strlen(target)
    let bytes = UnsafeRawPointer(target).assumingMemoryBound(to: UInt8.self)
    let request = reactor.opened(
        Unmanaged<HTTPConnection>.fromOpaque(known).takeUnretainedValue(),
        UnsafeBufferPointer(start: bytes, count: length))
    hideQuery(of: request, in: target, length)
    return known
}

/// Cuts off the target at the `?`, for libmicrohttpd only. ``Request/queryItems`` reads the query.
///
/// libmicrohttpd would create a record for each item, in the memory that the headers need. 250 items leave no room.
/// Version 0.9.75 then continues as if it had not refused the request: it sends no answer, and the connection stays
/// occupied until it is cut off.
///
/// The write is safe although the pointer is to constant characters. libmicrohttpd passes a `char *uri`
/// (`parse_initial_message_line`) into the connection's own buffer, so writing to it is defined. The byte is part of
/// the string that was passed, not its NUL, so it is in bounds whatever a later version passes. Right after this
/// callback, libmicrohttpd writes a NUL over the `?` and reads the items from the next byte to the next NUL, which is
/// now that byte. It reads the target nowhere else. If that changes, the refusal returns, and
/// `queriesOfManyItems_areAnsweredLikeOthers` fails.
private func hideQuery(of request: Request, in target: UnsafePointer<CChar>, _ length: Int) {
    let queryStart = request.received.queryStart
    if queryStart + 1 < length { UnsafeMutablePointer(mutating: target)[queryStart + 1] = 0 }
}

/// Receives libmicrohttpd's log messages. Version 0.9.75 logs a refused Content-Length right before it answers, and has
/// no callback for it. If a later version changes the text, its own answers reach the client, and `FramingTests` fails.
func libraryHasLogged(
    _ context: UnsafeMutableRawPointer?, _ format: UnsafePointer<CChar>?, _: UnsafeMutableRawPointer?
) {
    guard let context, let format, strstr(format, "Content-Length") != nil else { return }
    Unmanaged<Reactor>.fromOpaque(context).takeUnretainedValue().refuseUnusableLength()
}

/// Keeps addresses percent-encoded, because the router and the handlers decode them.
func keepEscapes(
    _: UnsafeMutableRawPointer?, _: OpaquePointer?, _ text: UnsafeMutablePointer<CChar>?
) -> Int {
    text.map { strlen($0) } ?? 0
}

func accessHandler(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?, _ target: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ upload: UnsafePointer<CChar>?,
    _ uploadSize: UnsafeMutablePointer<Int>?, _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let context, let handle, let uploadSize, let known = slot?.pointee,
        let request = Unmanaged<HTTPConnection>.fromOpaque(known).takeUnretainedValue().request
    else { return .NO }
    let reactor = Unmanaged<Reactor>.fromOpaque(context).takeUnretainedValue()
    if request.connection == nil {
        guard let target, let method, let version else { return .NO }
        request.method = HTTPMethod(rawValue: String(cString: method))
        let head = readHead(of: request, handle, method: method, target: target, version: version)
        return reactor.begin(request, handle, head)
    }
    guard uploadSize.pointee > 0 else { return reactor.proceed(request) }
    defer { uploadSize.pointee = 0 }
    guard let upload else { return .NO }
    let count = uploadSize.pointee
    return upload.withMemoryRebound(to: UInt8.self, capacity: count) {
        reactor.receive(request, UnsafeBufferPointer(start: $0, count: count))
    }
}

func readHead(
    of request: Request, _ handle: OpaquePointer, method: UnsafePointer<CChar>, target: UnsafePointer<CChar>,
    version: UnsafePointer<CChar>
) -> RequestHead {
    var head = RequestHead(
        method: method, target: target, targetCount: request.received.count, version: version,
        byteCount: cmhd_head_bytes(handle))
    request.fields.begin(head.bytes)
    withUnsafeMutablePointer(to: &head) { head in
        var reading = (head: head, fields: Unmanaged.passUnretained(request.fields))
        _ = MHD_get_connection_values_n(handle, .HEADER_KIND, readHeader, &reading)
    }
    head.finish()
    return head
}

func readHeader(
    _ context: UnsafeMutableRawPointer?, _: MHD_ValueKind, _ name: UnsafePointer<CChar>?, _ nameCount: Int,
    _ value: UnsafePointer<CChar>?, _ valueCount: Int
) -> MHD_Result {
    guard let context, let name, let value else { return .YES }
    let reading = context.assumingMemoryBound(
        to: (head: UnsafeMutablePointer<RequestHead>, fields: Unmanaged<RequestFields>).self)
    reading.pointee.head.pointee.add(name: name, nameCount, value: value, valueCount)
    reading.pointee.fields.takeUnretainedValue().add(
        name: UnsafeRawPointer(name).assumingMemoryBound(to: UInt8.self), nameCount,
        value: UnsafeRawPointer(value).assumingMemoryBound(to: UInt8.self), valueCount)
    return .YES
}

func requestCompleted(
    _ context: UnsafeMutableRawPointer?, _: OpaquePointer?, _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _: MHD_RequestTerminationCode
) {
    guard let context, let slot, let known = slot.pointee else { return }
    slot.pointee = nil
    let connection = Unmanaged<HTTPConnection>.fromOpaque(known).takeUnretainedValue()
    Unmanaged<Reactor>.fromOpaque(context).takeUnretainedValue().completed(connection)
}

extension MHD_OptionItem {
    init(_ option: MHD_OPTION, _ value: Int, _ context: UnsafeMutableRawPointer? = nil) {
        self.init(option: option, value: value, ptr_value: context)
    }
}
