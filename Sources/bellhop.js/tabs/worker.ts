// The SharedWorker that holds the stream of all tabs of a user, whose identity is in its name. Only tabs have tokens.
import { network } from "../adapters/browser.js";
import { tableLine } from "../stores/tables.js";
import { indexedDBStorage } from "../storage/indexeddb.js";
import { systemClock } from "../stores/store.js";
import { fetchTransport } from "../transport/fetch.js";
import { makeId } from "../calls.js";
import { group } from "./group.js";
import { holder } from "./holder.js";

/** What a shared worker uses of its global object. */
interface SharedWorkerScope {
  name: string;
  onconnect(event: MessageEvent): void;
}

const worker = globalThis as unknown as SharedWorkerScope;
const { url, identity, name, scope } = JSON.parse(worker.name);

group({
  name, tab: makeId(), isTab: false, clock: systemClock,
  makeHolder: (parts) => {
    const it = holder({
      url, user: null, identity, scope, clock: systemClock, transport: fetchTransport(), storage: indexedDBStorage(),
      clientId: makeId(), limits: { isOnline: network.online() }, rows: tableLine, ...parts,
    });
    network.listen(() => it.network({ online: network.online() }));
    return it;
  },
  emit: () => {},
}).start();
// Reports to each new connection that the worker runs. Everything else uses the channels.
worker.onconnect = (event) => event.ports[0].postMessage("runs");
