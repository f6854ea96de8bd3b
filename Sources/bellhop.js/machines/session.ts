// Decides which of the identities that a device knows is shown before the service has answered, and which identity is
// closed when it answers. An identity is the service's digest of the rights of a token (R-SCH-FR-001).
import type { Outcome, SessionAction } from "../actions.js";
import type { SessionInput } from "./inputs.js";

/** The identity of a token, with the digests of the token's issuer and subject, and of its subject alone. */
export interface Known {
  identity: string;
  holder: string | null;
  person: string | null;
}

export interface State {
  identity: string | null;
  isConfirmed: boolean;
}

type Result = Outcome<State, SessionAction>;

export const initial = (): State => ({ identity: null, isConfirmed: false });

export function receive(state: State, input: SessionInput): Result {
  const { type, identity = null, holder, person, known = [] } = input;
  if (type !== "user" && state.isConfirmed && (type === "begin" || identity === state.identity)) {
    return { state, actions: [] };
  }
  if (type === "identity") {
    return {
      state: { identity, isConfirmed: true },
      actions: [
        ...show(state, identity).actions, { do: "keep", known: { identity, holder, person } as Known },
        { do: "confirm", identity: identity as string },
      ],
    };
  }
  // Two identities of one holder have different rights: without an answer, either could be the wrong one.
  const isOwn = (one: Known) => holder ? one.holder === holder : person && one.person === person;
  const [first, ...others] = new Set(known.filter(isOwn).map((one: Known) => one.identity));
  return show(state, first && !others.length ? first : null);
}

/** Shows another identity, or none. */
function show(state: State, identity: string | null): Result {
  if (identity === state.identity) return { state, actions: [] };
  return {
    state: { identity, isConfirmed: false },
    actions: [
      ...(state.identity ? [{ do: "close" } as const] : []), ...(identity ? [{ do: "open", identity } as const] : []),
    ],
  };
}
