// A test server on a real socket: the test controls its stream and its answers.
import { createServer } from "node:http";
import { once } from "node:events";
import { identityOf as identityOfClaims } from "./scripted.js";

/** `answers`: {"GET /v1/badges": {status, body}} or a function of the request's body and the request; `identityOf`: the
 * service's digest of a token. */
export async function streamServer(answers = {}, identityOf = identityOfClaims) {
  const streams = new Set();
  const requests = [];
  let count = 0;
  const server = createServer(async (request, response) => {
    const [path] = request.url.split("?");
    let text = "";
    for await (const chunk of request) text += chunk;
    const place = `${request.method} ${path}`;
    const identity = identityOf(request.headers.authorization?.slice(7) ?? "");
    if (place === "GET /v1/me" && !answers[place]) {
      response.writeHead(200, { "content-type": "application/json" });
      return response.end(JSON.stringify({ identity }));
    }
    requests.push({ place, headers: request.headers, body: text ? JSON.parse(text) : null });
    if (place === "GET /v1/stream") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      streams.add(response);
      response.on("close", () => streams.delete(response));
      count += 1;
      return send("stream:ready", {
        streamId: `s${count}`, identity, topics: ["personal"], replayed: 0, serverTime: new Date().toISOString(),
        badges: { messages: 0, requests: 0, bell: 0, total: 0, version: 0, epoch: "e", asOf: new Date().toISOString() },
      }, response);
    }
    // The id of a stream or a device stands as * in the answers.
    const given = answers[place] ?? answers[place.replace(/\/(s\d+|[0-9a-f]{32})(?=\/|$)/, "/*")];
    const answer = typeof given === "function" ? await given(text ? JSON.parse(text) : null, request) : given;
    const { status = 200, body = null } = answer ?? { status: 404, body: { code: "not_found" } };
    response.writeHead(status, { "content-type": "application/json" });
    response.end(body === null ? "" : JSON.stringify(body));
  });
  function send(name, data, only) {
    for (const response of only ? [only] : streams) response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  }
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`, send, requests, streams,
    cut: () => streams.forEach((response) => response.destroy()),
    async stop() {
      streams.forEach((response) => response.destroy());
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
