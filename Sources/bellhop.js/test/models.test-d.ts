// Type checks of models.ts: these lines compile, and each expected error is marked.

import type { Features } from "../features.js";
import type { AnswerTo, BodyOf, Badges, Booking, Events, OperationOf, Page, Notification, StreamEvent } from "../models.js";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Same<A, B>): void {}

same<AnswerTo<"GET", "/v1/badges">, Badges>(true);
same<AnswerTo<"GET", "/v1/badges?include=conversations">, Badges>(true);
same<AnswerTo<"GET", "/v1/notifications?limit=5">, Page<Notification>>(true);
same<AnswerTo<"PATCH", "/v1/bookings/b1">, Booking>(true);
same<AnswerTo<"DELETE", "/v1/shops/s1/barbers/b1">, undefined>(true);
same<AnswerTo<"GET", "/v1/badges/of/nobody">, never>(true);
same<OperationOf<"POST", "/v1/badges">, never>(true);
same<Events["badges:update"], Badges>(true);

interface Todo { id: number; title: string }
declare const bell: Features;
const todos = bell.rows<Todo>("todos", { filter: "list_id=eq.7", select: ["title"] });
same<ReturnType<typeof todos.get>["rows"], Readonly<Record<string, Todo>>>(true);
todos.load([{ id: 1, title: "Buy milk" }]);
// @ts-expect-error a row of another type
todos.load([{ id: 1 }]);
// @ts-expect-error rows need a filter
bell.rows("todos", {});

declare function get<Path extends string>(path: Path): Promise<AnswerTo<"GET", Path>>;
declare const shop: string;

export async function check(event: StreamEvent): Promise<number> {
  const queue = await get(`/v1/shops/${shop}/queue`);
  const code = await get(`/v1/shops/${shop}/presence/code`);
  const body: BodyOf<"POST", "/v1/conversations/c1/messages"> = { text: code.code };
  // @ts-expect-error a message has no member of this name
  body.texts;
  // An enum value that only a newer service knows is not an error.
  const state: typeof queue.state = "closed";
  if (state === "open") return queue.avgWaitTime;
  return event.name === "badges:update" ? event.data.bell : 0;
}
