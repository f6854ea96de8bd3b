"""Mutants that break the opening of a stream: its headers, parameters, credentials and refusals."""

import json
import time

from .edits import (
    at, body, each_event, header, is_opening, parameters, problem, refuse, resigned, sent, status, stream_header,
    without_header, without_parameter,
)
from .mutation import Mutant, Response

TICKETS = at("/v1/stream-tickets", "POST")
KNOWN = {"topics", "lastEventId", "ticket"}
SOMEONE = "someone-else"


def soon():
    return int(time.time()) + 3600


def both(*edits):
    """Applies edits one after the other."""
    def edit(*arguments):
        for part in edits:
            part(*arguments)
    return edit


# MARK: Opening


def constant_request_id(request, answer, _):
    answer.set("x-request-id", "always-the-same")


def own_request_id(request, answer, proxy):
    proxy.memory["requests"] = proxy.memory.get("requests", 0) + 1
    answer.set("x-request-id", f"own{proxy.memory['requests']}")


def obey_accept(request, answer, _):
    if answer.is_stream and request.header("Accept"):
        answer.set("content-type", "text/plain")


def head_refused(request, _):
    if is_opening(request) and request.method == "HEAD":
        request.answer = Response(405, [("allow", "GET")], b"")


def options_refused(request, _):
    if is_opening(request) and request.method == "OPTIONS":
        request.answer = Response(405, [], b"")


def never_makes_room(request, proxy):
    """Counts the streams that a token has opened, and not those that are open."""
    if is_opening(request) and request.token:
        opened = proxy.memory.setdefault("opened", {})
        opened[request.token] = opened.get(request.token, 0) + 1
        if opened[request.token] > 20:
            refuse(is_opening, "stream.too_many", 429)(request, proxy)


def waits_for_an_event(request, proxy):
    held = []

    def handle(block):
        if not any(earlier.is_event for earlier in held) or not block.is_event:
            held.append(block)
            return []
        parts = [*held, block]
        held.clear()
        return parts
    return handle


def one_stream_per_user(request, proxy):
    """Only the first stream of a token receives events."""
    opened = proxy.memory.setdefault("streams", {})
    number = opened[request.token] = opened.get(request.token, 0) + 1
    return lambda block: [block] if number == 1 or not block.is_event or block.name == "stream:ready" else []


OPENINGS = [
    Mutant("wrong-content-type", "S-OPEN-1 S-OPEN-8", "streams are text/plain", answer=stream_header("content-type", "text/plain")),
    Mutant("cacheable-stream", "S-OPEN-2", "caches may store a stream", answer=stream_header("cache-control", "public, max-age=60")),
    Mutant("buffered-by-proxies", "S-OPEN-3", "proxies may buffer", answer=stream_header("x-accel-buffering", None)),
    Mutant("stream-with-a-length", "S-OPEN-4", "a stream has a length", answer=stream_header("content-length", "1000000")),
    Mutant("compressed-stream", "S-OPEN-4", "a stream claims to be compressed", answer=stream_header("content-encoding", "gzip")),
    Mutant("no-vary", "S-OPEN-5", "Vary is absent", answer=stream_header("vary", None)),
    Mutant("no-request-ids", "S-OPEN-6 S-ERR-3", "answers have no request id", answer=header("x-request-id", None, lambda _: True)),
    Mutant("one-request-id", "S-OPEN-6 S-OPEN-7", "all answers have the same request id", answer=constant_request_id),
    Mutant("own-request-ids", "S-OPEN-7 S-ERR-3", "the request id of a client is replaced", answer=own_request_id),
    Mutant("obeys-accept", "S-OPEN-8", "Accept decides on the content type", answer=obey_accept),
    Mutant("no-head", "S-OPEN-9", "HEAD is refused", request=head_refused),
    Mutant("head-in-plain", "S-OPEN-9", "HEAD has another content type",
           answer=header("content-type", "text/plain", lambda request: request.method == "HEAD")),
    Mutant("takes-any-method", "S-OPEN-10", "other methods open a stream", answer=status(405, 200)),
    Mutant("no-allow", "S-OPEN-10", "405 has no Allow", answer=header("allow", None, is_opening, 405)),
    Mutant("no-options", "S-OPEN-11", "OPTIONS is refused", request=options_refused),
    Mutant("unlimited-streams", "S-OPEN-12 S-ERR-5", "a user may open any number of streams", answer=status(429, 200)),
    Mutant("never-makes-room", "S-OPEN-13", "ended streams count forever", request=never_makes_room),
    Mutant("waits-for-an-event", "S-OPEN-14", "the first event waits for another one", stream=waits_for_an_event),
    Mutant("one-stream-per-user", "S-OPEN-15 S-ORDER-4", "only one stream of a user is served", stream=one_stream_per_user),
]


def only_http_1_1(request, proxy):
    if request.version == "HTTP/1.0":
        refuse(is_opening, "request.malformed", 505)(request, proxy)


def without_body(request, _):
    if is_opening(request) and request.method == "GET":
        request.body = b""


def limits_backends(request, proxy):
    claims = request.claims or {}
    if claims.get("app_metadata", {}).get("user_role") == "service_role":
        never_makes_room(request, proxy)


OPENINGS += [
    Mutant("takes-bodies", "S-OPEN-16", "a GET with a body opens a stream", request=without_body),
    Mutant("limits-backends", "S-OPEN-17", "backends have the limit of users", request=limits_backends),
    Mutant("no-rate-limit-headers", "S-OPEN-18", "answers do not show the limit of requests",
           answer=both(header("ratelimit", None, lambda _: True), header("ratelimit-policy", None, lambda _: True))),
    Mutant("only-http-1-1", "S-OPEN-19", "clients of HTTP/1.0 are refused", request=only_http_1_1),
]


# MARK: Origins

PREFIX = "access-control-"


def any_origin(request, answer, _):
    answer.set(f"{PREFIX}allow-origin", request.header("Origin"))


ORIGINS = [
    Mutant("no-cors", "S-CORS-1 S-CORS-3 S-CORS-4", "pages of other origins may read nothing",
           answer=both(*(header(PREFIX + name, None, lambda _: True) for name in ("allow-origin", "expose-headers", "allow-headers")))),
    Mutant("without-credentials", "S-CORS-1", "pages may not send the cookie", answer=header(f"{PREFIX}allow-credentials", None, lambda _: True)),
    Mutant("cors-for-all", "S-CORS-2", "pages of any origin may read", answer=any_origin),
]


# MARK: Parameters


def first_of_each(pairs):
    return list({name: (name, value) for name, value in reversed(pairs)}.values())


def undecoded(request, proxy):
    if is_opening(request) and "%" in request.query:
        refuse(is_opening, "request.invalid", 422)(request, proxy)


def empty_header_wins(request, _):
    if is_opening(request) and request.header("Last-Event-ID") == "":
        request.parameters = [pair for pair in request.parameters if pair[0] != "lastEventId"]


def header_loses(request, _):
    if is_opening(request) and "lastEventId" in dict(request.parameters):
        request.set("Last-Event-ID", None)


def strict_lists(request, proxy):
    topics = dict(request.parameters).get("topics", "")
    if is_opening(request) and (",," in topics or " " in topics):
        refuse(is_opening, "request.invalid", 422)(request, proxy)


def repeats_topics(request, proxy):
    asked = dict(request.parameters).get("topics", "").split(",")

    def handle(block):
        if block.name != "stream:ready":
            return [block]
        about = json.loads(block.data)
        about["topics"] = ["personal", *asked]
        return [f"event: stream:ready\nid: {block.id}\ndata: {json.dumps(about)}\n\n".encode()]
    return handle


PARAMETERS = [
    Mutant("ignores-unknown-parameters", "S-PARAM-1 S-ERR-6", "unknown parameters are ignored",
           request=parameters(lambda pairs: [pair for pair in pairs if pair[0] in KNOWN])),
    Mutant("takes-the-first", "S-PARAM-2 S-PARAM-3", "of repeated parameters the first one counts", request=parameters(first_of_each)),
    Mutant("parameter-wins", "S-PARAM-4", "lastEventId wins over the header", request=header_loses),
    Mutant("strict-lists", "S-PARAM-5", "spaces in lists are refused", request=strict_lists),
    Mutant("repeats-topics", "S-PARAM-6", "topics are listed as the client wrote them", stream=repeats_topics),
    Mutant("undecoded-parameters", "S-PARAM-8", "parameters are not decoded", request=undecoded),
    Mutant("empty-header-wins", "S-PARAM-9", "an empty header hides the parameter", request=empty_header_wins),
    Mutant("topics-first", "S-PARAM-7", "topics are checked before credentials",
           answer=status(401, 422, lambda request: is_opening(request) and "topics" in request.query)),
]


# MARK: Tokens


def case_sensitive(request, proxy):
    scheme = (request.header("Authorization") or "Bearer").partition(" ")[0]
    if is_opening(request) and scheme != "Bearer":
        refuse(is_opening, "unauthenticated", 401)(request, proxy)


def is_expired(claims):
    return claims is not None and claims.get("exp", soon()) <= time.time()


def is_of_the_future(claims):
    return claims is not None and max(claims.get("nbf", 0), claims.get("iat", 0)) > time.time() + 30


def valid(claims):
    return {"sub": SOMEONE, **(claims or {}), "exp": soon()}


def without_authorization(request, _):
    """Lets a cookie or a ticket win over the header."""
    if is_opening(request) and (request.header("Cookie") or "ticket" in request.query):
        request.set("Authorization", None)


def token_from_query(request, _):
    for name, value in request.parameters if is_opening(request) else []:
        if name in ("token", "access_token", "authorization", "jwt"):
            request.set("Authorization", f"Bearer {value}")
            request.parameters = [pair for pair in request.parameters if pair[0] != name]


def one_tenant(request, proxy):
    claims = request.claims
    if claims and "app_metadata" in claims:
        claims["app_metadata"]["tenant"] = "shared"
        request.set("Authorization", f"Bearer {proxy.sign(**claims)}")


def publishes_to_all(event):
    event.pop("topic", None)
    if not event["event"].startswith("kit:end"):
        event["to"] = ["everyone"]


TOKENS = [
    Mutant("refuses-tokens", "S-TOKEN-1", "no token opens a stream", request=without_header("Authorization")),
    Mutant("case-sensitive-scheme", "S-TOKEN-1", "the scheme must be written as Bearer", request=case_sensitive),
    Mutant("open-to-all", "S-TOKEN-2", "a stream needs no credentials", answer=status(401, 200, code="unauthenticated")),
    Mutant("accepts-expired-tokens", "S-TOKEN-3", "expired tokens open streams", request=resigned(is_expired, valid)),
    Mutant("ignores-signatures", "S-TOKEN-4 S-TOKEN-7 S-TOKEN-6", "signatures are not verified", request=resigned(lambda _: True, valid)),
    Mutant("accepts-future-tokens", "S-TOKEN-5", "nbf and iat are ignored",
           request=resigned(is_of_the_future, lambda claims: {**claims, "nbf": 0, "iat": 0})),
    Mutant("forgets-revocations", "S-TOKEN-8 S-TICKET-8", "revoked tokens open streams",
           answer=status(401, 200, code="invalid_token.revoked")),
    Mutant("header-loses", "S-TOKEN-9", "a cookie or a ticket wins over the header", request=without_authorization),
    Mutant("accepts-any-lifetime", "S-TOKEN-10", "tokens may be valid for a year",
           request=resigned(lambda claims: claims and claims["exp"] > time.time() + 90 * 86_400, valid)),
    Mutant("token-in-the-query", "S-TOKEN-11", "a parameter may carry the token", request=token_from_query),
    Mutant("publishes-to-all", "S-TOKEN-12 S-RESUME-8", "events for one user reach all users", request=each_event(publishes_to_all)),
    Mutant("one-tenant", "S-TOKEN-13 S-RESUME-8 S-RENEW-3 S-READY-5", "all tenants are one", request=one_tenant),
    Mutant("no-challenge", "S-TOKEN-14", "401 has no WWW-Authenticate", answer=header("www-authenticate", None, is_opening)),
]


# MARK: Tickets and the cookie


def ticket_of_someone(request, proxy):
    if is_opening(request) and "ticket" in dict(request.parameters):
        request.set("Authorization", f"Bearer {proxy.sign(sub=SOMEONE, exp=soon())}")
        without_parameter("ticket")(request, proxy)


def reusable_tickets(request, proxy):
    ticket, used = dict(request.parameters).get("ticket"), proxy.memory.setdefault("tickets", set())
    if is_opening(request) and ticket in used:
        ticket_of_someone(request, proxy)
    used.add(ticket)


def refused_if_burnt(request, proxy):
    if is_opening(request) and dict(request.parameters).get("ticket") in proxy.memory.get("burnt", ()):
        refuse(is_opening, "stream.ticket_invalid", 401)(request, proxy)


def burns_tickets(request, answer, proxy):
    if answer.status == 422:
        proxy.memory.setdefault("burnt", set()).add(dict(request.parameters).get("ticket"))


def ticket_for_all(request, proxy):
    if TICKETS(request) and request.header("Authorization") is None:
        request.set("Authorization", f"Bearer {proxy.sign(sub=SOMEONE, exp=soon())}")


def late_expiry(value):
    value["expiresAt"] = "2099-01-01T00:00:00.000Z"


def endless_by_ticket(request, proxy):
    is_affected = "ticket" in request.query
    return lambda block: [] if is_affected and block.name == "stream:closing" else [block]


def no_page_by_cookie(request, _):
    if request.header("Origin") or request.header("Sec-Fetch-Site"):
        request.set("Cookie", None)


def cookie_everywhere(request, _):
    cookie = request.header("Cookie") or ""
    if "bellhop_token=" in cookie and not is_opening(request):
        request.set("Authorization", f"Bearer {cookie.partition('bellhop_token=')[2]}")


TICKETS_AND_COOKIE = [
    Mutant("ticket-without-expiry", "S-TICKET-1 S-TICKET-9", "a ticket has no expiresAt",
           answer=body(TICKETS, lambda value: {"ticket": value.get("ticket")})),
    Mutant("ticket-with-200", "S-TICKET-1", "a ticket is answered with 200", answer=status(201, 200, TICKETS)),
    Mutant("ticket-of-someone", "S-TICKET-2", "a ticket opens the stream of another user", request=ticket_of_someone),
    Mutant("reusable-tickets", "S-TICKET-3", "a ticket opens many streams", request=reusable_tickets),
    Mutant("accepts-any-ticket", "S-TICKET-4", "any text is a ticket", answer=status(401, 200, code="stream.ticket_invalid")),
    Mutant("ticket-without-topics", "S-TICKET-5 S-TICKET-11", "the topics of a ticket are ignored", request=sent(TICKETS, lambda _: {})),
    Mutant("ticket-topics-win", "S-TICKET-5 S-TICKET-6", "the topics of the query are ignored", request=without_parameter("topics")),
    Mutant("burns-tickets", "S-TICKET-6", "a refused request uses up the ticket", request=refused_if_burnt, answer=burns_tickets),
    Mutant("cacheable-tickets", "S-TICKET-7", "caches may store a ticket", answer=header("cache-control", "public", TICKETS)),
    Mutant("endless-by-ticket", "S-TICKET-8", "a stream by ticket ends without a reason", stream=endless_by_ticket),
    Mutant("long-lived-tickets", "S-TICKET-9", "a ticket is valid for years", answer=body(TICKETS, late_expiry)),
    Mutant("tickets-for-all", "S-TICKET-10", "a ticket needs no token", request=ticket_for_all),
    Mutant("no-cookie", "S-COOKIE-1 S-COOKIE-4", "the cookie opens nothing", request=without_header("Cookie")),
    Mutant("any-origin", "S-COOKIE-2", "pages of any origin may use the cookie", request=without_header("Origin")),
    Mutant("any-site", "S-COOKIE-3", "Sec-Fetch-Site is ignored", request=without_header("Sec-Fetch-Site")),
    Mutant("no-page-by-cookie", "S-COOKIE-4", "no page may use the cookie", request=no_page_by_cookie),
    Mutant("cookie-everywhere", "S-COOKIE-5", "the cookie authenticates all requests", request=cookie_everywhere),
]


# MARK: Errors


def plain_json(request, answer, _):
    if answer.status >= 400:
        answer.set("content-type", "application/json")


def with_query(members, request):
    members["instance"] = f"{request.path}?{request.query}"


def echo(members, request):
    members["detail"] = f"{request.header('Authorization')} {request.query}"


def without(*names):
    return lambda members, _: [members.pop(name, None) for name in names]


ERRORS = [
    Mutant("errors-in-json", "S-ERR-1", "errors are application/json", answer=plain_json),
    Mutant("errors-without-code", "S-ERR-1 S-ERR-2", "errors have no code and no status", answer=problem(without("code", "status"))),
    Mutant("wrong-status-member", "S-ERR-2", "the member status is 400",
           answer=problem(lambda members, _: members.update(status=400))),
    Mutant("wrong-request-id", "S-ERR-3", "the request id of the document is another one",
           answer=problem(lambda members, _: members.update(requestId="other"))),
    Mutant("errors-without-places", "S-ERR-4 S-SUB-12 S-TOPIC-5 S-PARAM-1 S-TICKET-11", "errors do not name places",
           answer=problem(without("errors"))),
    Mutant("no-retry-after", "S-ERR-5 S-OPEN-12", "429 has no Retry-After", answer=header("retry-after", None, is_opening)),
    Mutant("instance-with-query", "S-ERR-6", "errors repeat the query", answer=problem(with_query)),
    Mutant("errors-with-credentials", "S-ERR-7", "errors repeat credentials", answer=problem(echo)),
]

MUTANTS = [*OPENINGS, *ORIGINS, *PARAMETERS, *TOKENS, *TICKETS_AND_COOKIE, *ERRORS]
