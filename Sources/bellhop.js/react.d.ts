import type * as features from "./features.js";
import type { Bell, Connection } from "./types.js";

/** Gives a bell to the components below. */
export function BellhopProvider(props: { bell: Bell; children?: any }): any;
/** The bell itself, for calls and writes. */
export function useBellhop(): Bell & features.Features;
/** What any store shows. */
export function useStore<Snapshot>(store: { get(): Snapshot; subscribe(listener: () => void): () => void }): Snapshot;

// What a store shows, and its commands beside it. A bell of the core has those that it was given.
type Refresh = { refresh(): features.Answered };
/** Null until they are known. */
export function useBadges(): features.Badges | null;
export function useConnection(): Connection;
export function useNotifications(): features.Notifications & features.NotificationCommands & Refresh;
export function useConversations(): features.Conversations & { more(): features.Answered } & Refresh;
export function useConversation(id: string): features.Thread & features.ThreadCommands & Refresh;
export function useQueue(shopId: string): features.Queue & Refresh;
export function useBooking(id: string): features.Booking & features.BookingCommands & Refresh;
export function useLeaderboard(challengeId: string): features.Leaderboard & Refresh;
export function useFeed(): features.Feed & features.FeedCommands & Refresh;
export function useDJ(shopId: string): features.DJ & features.DJCommands & Refresh;

/** The rows that this component shows, kept up to date; one component of a table at a time, as there is one screen. */
export function useVisibleRows(
  table: string, ids: readonly (string | number)[], options?: features.RowOptions,
): features.VisibleRows;
/** Calls `refetch` whenever the service says that the query is stale, while the component is there. */
export function useInvalidation(key: readonly unknown[], refetch: (reason: string) => void): void;
