// Starts, from a page, the worker that holds the stream of all tabs.
import type { Clock } from "../types.js";

/** Maximum time to wait for a worker to report that it runs. */
const workerMs = 3000;

/** a worker lives as long as somebody refers to it */
const workers: SharedWorker[] = [];

/** Calls back once the worker runs, or once it is clear that it cannot. */
export function startWorker(
  whose: { url: string; identity: string | null; name: string; scope: string }, clock: Clock, enter: () => void,
) {
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
