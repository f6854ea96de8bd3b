import type {
  AnyFeature, Bell, Clock, Input, Listeners, Machine, Options, Running, StoresOf,
} from "./types.js";

export type { Answer, Event } from "./contract.js";
export type { AnyFeature, Bell, Connection, Feature, KeyedFeature, Options, Status } from "./types.js";

/** Connects to a service: `connect({ url, token, features: { badges, queue } })`. */
export function connect<Given extends Record<string, AnyFeature> = {}>(options: Options & { features?: Given }):
  Bell & StoresOf<Given>;

// Building blocks of features: see stores/feature.js.
export function run<State, Given>(machine: Machine<State, Given>, options: Given, clock: Clock,
  perform: (action: any) => any): Running<State>;
export function listeners<Value>(): Listeners<Value>;
export function report(error: unknown): void;
export function makeId(): string;
export function afterMs(value: string | null | undefined, now: number): number;
