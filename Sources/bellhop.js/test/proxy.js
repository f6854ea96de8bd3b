// A TCP proxy that cuts connections after any byte of the request or of the answer.
import { connect, createServer } from "node:net";

/** @param {string} target an http url
 * @param {() => number} random
 * @param {() => boolean} cuts whether the next connection is cut */
export async function cuttingProxy(target, random, cuts) {
  const { hostname, port } = new URL(target);
  const sockets = new Set();
  let cutCount = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    // Half of the cuts fall within the bytes of a small call, the others within a stream's bytes, or after a delay. A
    // connection that is never cut could carry all further traffic, and a test that waits for cuts would wait forever.
    const kind = random();
    const most = kind < 0.45 ? 900 : kind < 0.9 ? 9000 : 90_000;
    let left = cuts() ? Math.floor(random() * most) : Infinity;
    const cut = () => {
      if (left !== Infinity && !client.destroyed) cutCount += 1;
      client.destroy();
      upstream.destroy();
    };
    for (const [from, to] of [[client, upstream], [upstream, client]]) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.on("data", (data) => {
        const piece = data.subarray(0, left);
        left -= piece.length;
        if (left > 0) return void to.write(piece);
        // The forwarded bytes arrive before the cut.
        if (piece.length > 0) to.write(piece, cut);
        else cut();
      });
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cutCount: () => cutCount,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}
