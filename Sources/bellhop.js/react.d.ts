import type * as features from "./features.js";
import type { Bell, Connection } from "./types.js";

/** Gives a bell to the components below. */
export function BellhopProvider(props: { bell: Bell; children?: any }): any;
/** The bell itself, for calls and writes. */
export function useBellhop(): Bell & features.Features;
/** Returns the state of any store. */
export function useStore<Snapshot>(store: { get(): Snapshot; subscribe(listener: () => void): () => void }): Snapshot;

// The state of a store together with its commands. A core bell has only the features it was given.
type Refresh = { refresh(): features.Answered };
/** Null until the counts are known. */
export function useBadges(): features.Badges | null;
export function useConnection(): Connection;
export function useNotifications(): features.Notifications & features.NotificationCommands & Refresh;
export function useConversations(): features.Conversations & { more(): features.Answered } & Refresh;
export function useConversation(id: string): features.Thread & features.ThreadCommands & Refresh;
export function useQueue(shopId: string): features.Queue & Refresh;
export function useBooking(id: string): features.Booking & features.BookingCommands & Refresh;
export function useLeaderboard(challengeId: string): features.Leaderboard & Refresh;
export function useRequests(direction?: "incoming" | "outgoing"): features.Requests & features.RequestCommands & Refresh;
export function useFeed(): features.Feed & features.FeedCommands & Refresh;
export function useDJ(shopId: string): features.DJ & features.DJCommands & Refresh;

/** Keeps the rows that this component shows up to date. Only one component per table at a time. */
export function useVisibleRows(
  table: string, ids: readonly (string | number)[], options?: features.RowOptions,
): features.VisibleRows;
/** Calls `refetch` whenever the service reports the query as stale, while the component is mounted. */
export function useInvalidation(key: readonly unknown[], refetch: (reason: string) => void): void;
