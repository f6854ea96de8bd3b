// Module resolution for tests: React as Debian installs it, bellhop.js by its own name, and doubles of a device's
// packages.
import Module, { register } from "node:module";

const root = new URL("../../../.build-js/", import.meta.url).href;
const device = (code) => `data:text/javascript,${encodeURIComponent(code)}`;
const known = {
  react: "file:///usr/share/nodejs/react/index.js",
  "react-test-renderer": "file:///usr/share/nodejs/react-test-renderer/index.js",
  "bellhop.js": `${root}index.js`,
  "https://bells.example/bellhop.js": `${root}index.js`,
  "https://bells.example/bellhop-core.js": `${root}core.js`,
  "https://bells.example/bellhop-features.js": `${root}features.js`,
  "https://bells.example/bellhop-tabs.js": `${root}tabs.js`,
  "bellhop.js/offline": `${root}offline.js`,
  "bellhop.js/push": `${root}push.js`,
  "bellhop.js/react": `${root}react.js`,
  "bellhop.js/tanstack": `${root}tanstack.js`,
  "bellhop.js/players": `${root}players.js`,
  "@tanstack/react-query": device("export function QueryClient() { return globalThis.queryClient; }"),
  "@react-native-async-storage/async-storage": device("export default globalThis.device.storage"),
  "@react-native-community/netinfo": device("export default globalThis.device.netInfo"),
  "expo-haptics": device(`
    const { haptics } = globalThis.device;
    export const { notificationAsync, impactAsync, NotificationFeedbackType, ImpactFeedbackStyle } = haptics;
  `),
  "react-native": device("export const AppState = globalThis.device.appState"),
};

// The renderer requires React as CommonJS, which Node searches in NODE_PATH.
process.env.NODE_PATH ??= "/usr/share/nodejs";
Module._initPaths();
register(device(`
  const known = ${JSON.stringify(known)};
  export function resolve(name, context, next) {
    const url = known[name];
    if (!url) return next(name, context);
    return { url, shortCircuit: true, format: url.startsWith("file:///usr") ? "commonjs" : "module" };
  }
`));

/** Whether React is installed, as Debian's node-react and node-react-test-renderer. */
export const hasReact = await import("react-test-renderer").then(() => true, () => false);

/** Returns an unsigned token in the service's format, for test servers that do not verify tokens. */
export function plainToken(subject, seconds = 3600) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none" })}.${part({ sub: subject, exp: Math.floor(Date.now() / 1000) + seconds })}.x`;
}
