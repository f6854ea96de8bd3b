// Network and lifecycle of a browser. Elsewhere the network always counts as available and the app as in the
// foreground.
import type { Globals } from "../internal.js";
import type { Lifecycle, Network } from "../types.js";

const scope = globalThis as unknown as Globals;

interface Device {
  userAgent: string;
  product: string;
  maxTouchPoints: number;
}

function listenTo(target: EventTarget | undefined, names: string[], listener: (event: Event) => void): () => void {
  if (!target?.addEventListener) return () => {};
  for (const name of names) target.addEventListener(name, listener);
  return () => names.forEach((name) => target.removeEventListener(name, listener));
}

const online = () => scope.navigator?.onLine !== false;
export const network: Network = {
  online,
  listen: (listener) => listenTo(scope, ["online", "offline"], () => listener(online())),
};

const foreground = () => scope.document?.visibilityState !== "hidden";
export const lifecycle: Lifecycle = {
  foreground,
  listen: (listener) => listenTo(scope.document, ["visibilitychange"], () => listener(foreground())),
};

/** Returns how long the stream stays open in the background: 30 s on phones and tablets, where it costs battery; null
 * means no limit. An iPad calls itself a Mac, but Macs have no touch screen. */
export const backgroundMs = ({ userAgent, product, maxTouchPoints } = scope.navigator ?? ({} as Device)) =>
  /Mobi|Android|ReactNative/.test(userAgent + product) || maxTouchPoints > 1 && /Mac/.test(userAgent) ? 30_000 : null;

/** A hidden page (also one in the back/forward cache) must not keep holding the stream that all tabs share. */
export function listenToPage(hide: () => void, show: () => void) {
  const page = scope.document && scope;
  const offs = [
    listenTo(page, ["pagehide"], hide),
    listenTo(page, ["pageshow"], (event) => (event as PageTransitionEvent).persisted && show()),
  ];
  return () => offs.forEach((off) => off());
}
