// Starts, from a page, the worker that holds the stream of all tabs.

/** Maximum time to wait for a worker to report that it runs. */
const workerMs = 3000;

/** @type {SharedWorker[]} a worker lives as long as somebody refers to it */
const workers = [];

/** Calls back once the worker runs, or once it is clear that it cannot.
 * @param {{url: string, identity: string | null, name: string, scope: string}} whose
 * @param {import("../types").Clock} clock @param {() => void} enter */
export function startWorker(whose, clock, enter) {
  clock.after(workerMs, enter);
  try {
    const worker = new SharedWorker(new URL("./worker.js", import.meta.url), {
      type: "module", name: JSON.stringify(whose),
    });
    worker.onerror = enter;
    worker.port.onmessage = enter;
    workers.splice(0, workers.length, worker);
  } catch {
    // The module has another origin, or the page's policy forbids workers: the tabs elect one of themselves.
    enter();
  }
}
