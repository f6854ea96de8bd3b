"""Invented tokens of each provider, and how the service must read them by the settings of its page."""

from dataclasses import dataclass, field


@dataclass
class Provider:
    name: str
    payload: dict
    # What GET /v1/me must answer for the token.
    user: str
    tenant: str = "default"
    role: str = "authenticated"
    session: str | None = None
    # The claims that differ in the next token of the same session.
    renewed: dict = field(default_factory=dict)
    # The claims of the token that the provider issues for a backend; None if a backend has a service key.
    backend: dict | None = None
    # Claims of a token of the same kind for somebody else, and the claim that the refusal must name.
    foreign: list = field(default_factory=list)
    alg: str = "RS256"
    header: dict = field(default_factory=dict)


OTHER = {"iss": "https://evil.example"}

PROVIDERS = [
    Provider(
        "supabase", {
            "iss": "https://abcdefgh.supabase.co/auth/v1", "sub": "6d0c-ada", "aud": "authenticated", "role": "authenticated",
            "user_role": "teacher", "aal": "aal1", "amr": [{"method": "otp", "timestamp": 1764331190}], "session_id": "9b1",
            "email": "ada@x.example", "phone": "", "is_anonymous": False, "app_metadata": {"provider": "email"},
            "user_metadata": {"theme": "dark", "user_role": "admin"}},
        user="6d0c-ada", role="teacher", session="9b1", alg="ES256",
        renewed={"aal": "aal2", "email": "b@x.example", "user_metadata": {"theme": "light"}, "amr": []},
        foreign=[(OTHER, "iss"), ({"aud": "other"}, "aud"), ({"iss": "https://zzz.supabase.co/auth/v1"}, "iss")]),
    Provider(
        "firebase", {
            "iss": "https://securetoken.google.com/shop-1", "aud": "shop-1", "sub": "uAda", "user_id": "uAda",
            "auth_time": 1764330000, "role": "barber", "shop_ids": ["s1"], "email_verified": True,
            "picture": "https://x.example/1.png", "firebase": {
                "identities": {}, "sign_in_provider": "google.com", "tenant": "t-a"}},
        user="uAda", tenant="t-a", role="barber", renewed={"picture": "https://x.example/2.png", "email_verified": False},
        foreign=[({"iss": "https://securetoken.google.com/shop-2"}, "iss"), ({"aud": "shop-2"}, "aud")]),
    Provider(
        "auth0", {
            "iss": "https://acme.eu.auth0.com/", "sub": "auth0|ada1",
            "aud": ["https://api.example", "https://acme.eu.auth0.com/userinfo"], "azp": "cl1", "org_id": "org_A",
            "permissions": ["read:x"], "https://app.example/roles": ["admin"], "scope": "openid"},
        user="auth0|ada1", tenant="org_A", role="admin", renewed={"scope": "openid profile"},
        backend={"sub": "worker@clients", "azp": "worker", "aud": "https://api.example", "gty": "client-credentials",
                 "scope": "bellhop:service"},
        foreign=[(OTHER, "iss"), ({"aud": ["https://other.example"]}, "aud"), ({"aud": None}, "aud")]),
    Provider(
        "clerk", {
            "v": 2, "iss": "https://clerk.app.example", "azp": "https://app.example", "sub": "user_ada", "sid": "sess_1",
            "sts": "active", "fva": [7, -1], "nbf": 1764331190, "jti": "a1",
            "o": {"id": "org_A", "slg": "a", "rol": "admin", "per": "read", "fpm": "1"}},
        user="user_ada", tenant="org_A", role="admin", session="sess_1", renewed={"fva": [8, -1], "jti": "a2"},
        foreign=[(OTHER, "iss"), ({"azp": "https://evil.example"}, "azp"), ({"azp": None}, "azp")]),
    Provider(
        "cognito", {
            "iss": "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_X", "sub": "a-1", "client_id": "cl1",
            "token_use": "access", "cognito:groups": ["staff", "admin"], "origin_jti": "o1", "event_id": "e1",
            "auth_time": 1764330000, "username": "ada", "jti": "j1", "scope": "openid"},
        user="a-1", role="admin", header={"typ": None}, renewed={"jti": "j2", "event_id": "e2"},
        backend={"sub": "worker", "client_id": "worker", "token_use": "access", "scope": "bellhop/service"},
        foreign=[(OTHER, "iss"), ({"client_id": "cl2"}, "client_id"), ({"token_use": "id"}, "token_use")]),
    Provider(
        "keycloak", {
            "iss": "https://id.example/realms/app", "sub": "a-1", "aud": ["api", "account"], "typ": "Bearer", "azp": "web",
            "sid": "s-1", "acr": "1", "auth_time": 1764330000, "realm_access": {"roles": ["teacher", "offline_access"]},
            "organization": ["acme"], "jti": "j1"},
        user="a-1", tenant="acme", role="teacher", session="s-1", renewed={"jti": "j2", "acr": "0", "auth_time": 1764330001},
        backend={"sub": "b-1", "azp": "worker", "client_id": "worker", "aud": "api", "realm_access": {"roles": []}},
        foreign=[(OTHER, "iss"), ({"aud": "account"}, "aud"), ({"organization": ["acme", "other"]}, "organization")]),
    Provider(
        "better-auth", {
            "iss": "https://app.example", "aud": "https://app.example", "sub": "ada1", "id": "ada1", "name": "Ada",
            "email": "ada@x.example", "emailVerified": True, "image": None, "role": "admin,user", "organizationId": "org_A",
            "createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": "2026-11-28T11:00:00.000Z"},
        user="ada1", tenant="org_A", role="admin", alg="EdDSA", header={"typ": None},
        renewed={"name": "Ada L.", "updatedAt": "2026-11-28T12:00:00.000Z"},
        foreign=[(OTHER, "iss"), ({"aud": "https://other.example"}, "aud")]),
    Provider(
        "Okta", {
            "iss": "https://acme.okta.com/oauth2/default", "aud": "api://default", "sub": "ada@acme.example", "uid": "00uada",
            "cid": "cl1", "scp": ["openid"], "groups": ["Everyone", "Staff"], "ver": 1, "auth_time": 1764330000, "jti": "AT.1"},
        user="00uada", role="staff", renewed={"jti": "AT.2", "sub": "ada2@acme.example"},
        backend={"aud": "api://default", "sub": "worker", "cid": "worker", "scp": ["bellhop"]},
        foreign=[(OTHER, "iss"), ({"aud": "api://other"}, "aud")]),
    Provider(
        "Entra ID", {
            "iss": "https://login.microsoftonline.com/t-1/v2.0", "aud": "api-1", "sub": "pairwiseA", "oid": "o-ada", "tid": "t-1",
            "azp": "web-1", "roles": ["Teacher"], "scp": "read", "ver": "2.0", "aio": "A1", "rh": "0.1", "uti": "u1",
            "nbf": 1764331200},
        user="o-ada", tenant="t-1", role="teacher", renewed={"aio": "A2", "rh": "0.2", "uti": "u2", "sub": "pairwiseB"},
        backend={"aud": "api-1", "sub": "o-w", "oid": "o-w", "tid": "t-1", "azp": "w", "roles": ["Bellhop.Service"]},
        foreign=[({"iss": "https://login.microsoftonline.com/t-2/v2.0"}, "iss"), ({"aud": "api-2"}, "aud")]),
    Provider(
        "Google", {
            "iss": "https://accounts.google.com", "sub": "110000000000000000001", "aud": "c.apps.googleusercontent.com",
            "azp": "c.apps.googleusercontent.com", "hd": "x.example", "email_verified": True, "at_hash": "h", "nonce": "n"},
        user="110000000000000000001", tenant="x.example", renewed={"at_hash": "i", "nonce": "o"},
        foreign=[(OTHER, "iss"), ({"aud": "d.apps.googleusercontent.com"}, "aud")]),
    Provider(
        "Apple", {
            "iss": "https://appleid.apple.com", "aud": "com.example.app", "sub": "0001.a.1", "email_verified": "true",
            "nonce_supported": True},
        user="0001.a.1", header={"typ": None}, renewed={"email_verified": "false"},
        foreign=[(OTHER, "iss"), ({"aud": "com.example.other"}, "aud")]),
    Provider(
        "WorkOS", {
            "iss": "https://api.workos.com", "sub": "user_ada", "org_id": "org_A", "role": "admin", "roles": ["admin"],
            "permissions": ["a:b"], "sid": "session_1", "jti": "j1"},
        user="user_ada", tenant="org_A", role="admin", session="session_1", renewed={"jti": "j2", "permissions": []},
        foreign=[({"iss": "https://api.workos.com/user_management/client_2"}, "iss")]),
    Provider(
        "Logto", {
            "iss": "https://t.logto.app/oidc", "sub": "ada1", "aud": "urn:logto:organization:A", "organization_id": "A",
            "client_id": "c1", "scope": "read teach", "jti": "j1"},
        user="ada1", tenant="A", role="teacher", alg="ES384", header={"typ": "at+jwt"}, renewed={"jti": "j2"},
        backend={"sub": "worker", "client_id": "worker", "aud": "https://api.example", "scope": ""},
        foreign=[(OTHER, "iss"), ({"client_id": "c2"}, "client_id")]),
    Provider(
        "Zitadel", {
            "iss": "https://acme.zitadel.cloud", "sub": "170000000000000001", "aud": ["17@p", "17"],
            "urn:zitadel:iam:org:project:roles": {"teacher": {"18": "a.example"}, "service": {"19": "b.example"}},
            "urn:zitadel:iam:user:resourceowner:id": "18", "jti": "j1"},
        user="170000000000000001", tenant="18", role="teacher", renewed={"jti": "j2"},
        backend={"sub": "29", "aud": ["17"], "urn:zitadel:iam:user:resourceowner:id": "18",
                 "urn:zitadel:iam:org:project:roles": {"service": {"18": "a.example"}}},
        foreign=[(OTHER, "iss"), ({"aud": ["18"]}, "aud")]),
    Provider(
        "Ory", {
            "iss": "https://acme.projects.oryapis.com", "sub": "a-1", "aud": [], "client_id": "c1", "scp": ["openid"],
            "ext": {"tenant": "A", "role": "staff"}, "jti": "j1"},
        user="a-1", tenant="A", role="staff", renewed={"jti": "j2"}, backend={"sub": "worker", "client_id": "worker", "aud": []},
        foreign=[(OTHER, "iss"), ({"client_id": "c2"}, "client_id")]),
    Provider(
        "Descope", {
            "iss": "P2abc", "sub": "U2ada", "amr": ["email"], "drn": "DS", "dct": "T2A",
            "tenants": {"T2A": {"roles": ["admin"]}, "T2B": {"roles": []}}, "rexp": "2026-12-26T12:00:00Z"},
        user="U2ada", tenant="T2A", role="admin", renewed={"amr": ["otp"], "rexp": "2026-12-27T12:00:00Z"},
        foreign=[({"iss": "P2abd"}, "iss")]),
    Provider(
        "Stytch B2B", {
            "iss": "stytch.com/project-test-1", "aud": ["project-test-1"], "sub": "member-test-ada",
            "https://stytch.com/organization": {"organization_id": "organization-A", "slug": "a"},
            "https://stytch.com/session": {
                "id": "member-session-1", "last_accessed_at": "2026-11-28T12:00:00Z", "roles": ["stytch_member"]}},
        user="member-test-ada", tenant="organization-A", session="member-session-1", renewed={
            "https://stytch.com/session": {
                "id": "member-session-1", "last_accessed_at": "2026-11-28T12:05:00Z", "roles": ["stytch_member"]}},
        foreign=[({"iss": "stytch.com/project-test-2"}, "iss"), ({"aud": ["project-test-2"]}, "aud")]),
    Provider(
        "Kinde", {
            "iss": "https://acme.kinde.com", "sub": "kp_ada", "aud": [], "azp": "c1", "org_code": "org_A", "permissions": ["x"],
            "roles": [{"id": "1", "key": "teacher", "name": "T"}], "scp": ["openid"], "jti": "j1"},
        user="kp_ada", tenant="org_A", role="teacher", renewed={"jti": "j2", "permissions": []},
        backend={"aud": [], "azp": "worker", "gty": ["client_credentials"], "scp": []},
        foreign=[(OTHER, "iss"), ({"azp": "c2"}, "azp")]),
]
