// Network and lifecycle of a browser. Elsewhere the network always counts as available and the app as in the
// foreground.

const scope = /** @type {import("../internal").Globals} */ (/** @type {unknown} */ (globalThis));

/** @typedef {{userAgent: string, product: string, maxTouchPoints: number}} Device */

/** @param {EventTarget | undefined} target @param {string[]} names
 * @param {(event: Event) => void} listener @returns {() => void} */
function listenTo(target, names, listener) {
  if (!target?.addEventListener) return () => {};
  for (const name of names) target.addEventListener(name, listener);
  return () => names.forEach((name) => target.removeEventListener(name, listener));
}

const online = () => scope.navigator?.onLine !== false;
/** @type {import("../types").Network} */
export const network = {
  online,
  listen: (listener) => listenTo(scope, ["online", "offline"], () => listener(online())),
};

const foreground = () => scope.document?.visibilityState !== "hidden";
/** @type {import("../types").Lifecycle} */
export const lifecycle = {
  foreground,
  listen: (listener) => listenTo(scope.document, ["visibilitychange"], () => listener(foreground())),
};

/** Returns how long the stream stays open in the background: 30 s on phones and tablets, where it costs battery; null
 * means no limit. An iPad calls itself a Mac, but Macs have no touch screen. */
export const backgroundMs = ({ userAgent, product, maxTouchPoints } = scope.navigator ?? /** @type {Device} */ ({})) =>
  /Mobi|Android|ReactNative/.test(userAgent + product) || maxTouchPoints > 1 && /Mac/.test(userAgent) ? 30_000 : null;

/** A hidden page (also one in the back/forward cache) must not keep holding the stream that all tabs share.
 * @param {() => void} hide @param {() => void} show */
export function listenToPage(hide, show) {
  const page = scope.document && scope;
  const offs = [
    listenTo(page, ["pagehide"], hide),
    listenTo(page, ["pageshow"], (event) => /** @type {PageTransitionEvent} */ (event).persisted && show()),
  ];
  return () => offs.forEach((off) => off());
}
