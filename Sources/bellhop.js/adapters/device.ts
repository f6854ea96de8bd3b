// Adapters that convert React Native's packages into the interfaces that a bell takes.
import type { AppState, AsyncStorage, Lifecycle, NetInfo, Network, Storage } from "../types.js";

/** What a component of React Native and the part of a bell that it replaces have in common. */
interface Listening {
  addEventListener?: unknown;
}

/** Converts React Native's NetInfo; a Network is returned unchanged. */
export function networkOf(given?: Network | NetInfo): Network | undefined {
  if (!isListening<NetInfo>(given)) return given as Network | undefined;
  let last: { isConnected: boolean | null; type: string } = { isConnected: true, type: "unknown" };
  return {
    online: () => last.isConnected !== false,
    listen: (listener) => given.addEventListener((state) => {
      const changed = state.isConnected !== false && last.type !== "unknown" && state.type !== last.type;
      last = state;
      listener({ online: state.isConnected !== false, changed });
    }),
  };
}

/** Converts React Native's AppState; a Lifecycle is returned unchanged. */
export function lifecycleOf(given?: Lifecycle | AppState): Lifecycle | undefined {
  if (!isListening<AppState>(given)) return given as Lifecycle | undefined;
  // iOS reports "inactive" temporarily, while a call or the app switcher covers the app.
  const isBackground = (state: string) => state === "background";
  return {
    foreground: () => !isBackground(given.currentState),
    listen(listener) {
      const subscription = given.addEventListener("change", (state) =>
        listener(!isBackground(state)));
      return () => subscription.remove();
    },
  };
}

/** Converts React Native's AsyncStorage (or `localStorage`); a Storage is returned unchanged. */
export function storageOf(given?: Storage | AsyncStorage): Storage | undefined {
  if (!isAsyncStorage(given)) return given;
  return {
    get: async (key) => (await given.getItem(key)) ?? null,
    set: async (key, value) => void (await given.setItem(key, value)),
    remove: async (key) => void (await given.removeItem(key)),
    keys: async (prefix) => {
      const all = given.getAllKeys ? await given.getAllKeys() : Object.keys(given);
      return all.filter((key) => key.startsWith(prefix)).sort();
    },
  };
}

function isListening<Native extends Listening>(given: object | undefined): given is Native {
  return typeof (given as Listening | undefined)?.addEventListener === "function";
}

function isAsyncStorage(given?: Storage | AsyncStorage): given is AsyncStorage {
  const methods = ["getItem", "setItem", "removeItem"] as const;
  return methods.every((name) => typeof (given as AsyncStorage | undefined)?.[name] === "function");
}

/** Rejects a part that lacks a function, before it is used. */
export function checkParts(parts: Record<string, object | undefined>) {
  for (const of of ["network online listen", "lifecycle foreground listen", "storage get set remove keys"]) {
    const [name, ...members] = of.split(" ");
    const part = parts[name] as Record<string, unknown> | undefined;
    if (part && !members.every((member) => typeof part[member] === "function")) {
      throw new TypeError(`connect: ${name} must have ${members.join(", ")}`);
    }
  }
}
