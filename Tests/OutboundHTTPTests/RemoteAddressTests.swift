import OutboundHTTP
import TestSupport
import Testing

/// The addresses that count as public.
@Suite(.timed) struct RemoteAddressTests {
    @Test(arguments: [
        "1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
        "198.17.255.255", "198.20.0.0", "223.255.255.255", "2600::1", "2a00:1450:4001:81b::200e", "2001:200::1",
        "2001:4860:4860::8888", "2003::1", "3fff:1000::1",
    ])
    func publicAddresses_arePublic(_ text: String) throws {
        #expect(try #require(RemoteAddress(text)).isPublic)
    }

    @Test(arguments: [
        // Unspecified, private, shared, loopback, link-local, documentation, benchmarks, multicast, reserved, broadcast.
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.0.1",
        "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.0.1",
        "198.18.0.0", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.250", "240.0.0.1",
        "255.255.255.255",
        // The same ranges in IPv6, and IPv6 addresses that embed an IPv4 address.
        "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1",
        "2001::1", "2001:2::1", "2001:10::1", "2001:1ff::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "4000::1",
        "fc00::1", "fdff::1", "fe80::1", "fec0::1", "ff02::1",
    ])
    func specialAddresses_areNotPublic(_ text: String) throws {
        #expect(try !#require(RemoteAddress(text)).isPublic)
    }

    @Test(arguments: ["localhost", "", "1.2.3", "0x7f.1", "2130706433", "[::1]", "1.1.1.1.1", "fe80::1%lo"])
    func names_areNotAddresses(_ text: String) { #expect(RemoteAddress(text) == nil) }
}
