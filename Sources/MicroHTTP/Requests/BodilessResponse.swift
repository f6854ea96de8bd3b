import CMicroHTTPD
import Glibc

/// A libmicrohttpd response without a body. It is reused for the next answer of its connection, which differs in one or
/// two fields. libmicrohttpd copies each field that it is given, so a polling client causes only these copies.
final class BodilessResponse {
    let handle: OpaquePointer
    /// The current fields of the response.
    private var fields: HeaderFields

    init?(_ fields: HeaderFields) {
        guard let handle = MHD_create_response_from_buffer(0, nil, .RESPMEM_PERSISTENT) else { return nil }
        self.handle = handle
        self.fields = fields
        fields.forEachCString { _ = MHD_add_response_header(handle, $0, $1) }
    }

    deinit { MHD_destroy_response(handle) }

    /// Replaces the fields that differ.
    func replace(by wanted: HeaderFields) {
        let handle = handle
        fields.withCStrings { present in
            wanted.withCStrings { wanted in
                while true {
                    let (old, new) = (present.next(), wanted.next())
                    if old == nil, new == nil { return }
                    if let old, let new, strcmp(old.name, new.name) == 0, strcmp(old.value, new.value) == 0 { continue }
                    if let old { MHD_del_response_header(handle, old.name, old.value) }
                    if let new { MHD_add_response_header(handle, new.name, new.value) }
                }
            }
        }
        fields = wanted
    }
}
