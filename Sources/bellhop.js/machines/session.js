// Decides which of the identities that a device knows is shown before the service has answered, and which identity is closed when
// it answers. An identity is the service's digest of the rights of a token (R-SCH-FR-001).

/** @typedef {{identity: string, holder: string | null, person: string | null}} Known the identity of a token, with the
 *   digests of the token's issuer and subject, and of its subject alone */
/** @typedef {{identity: string | null, isConfirmed: boolean}} State */

/** @returns {State} */
export const initial = () => ({ identity: null, isConfirmed: false });

/** @param {State} state @param {import("./inputs").SessionInput} input @returns {{state: State, actions: any[]}} */
export function receive(state, input) {
  const { type, identity = null, holder, person, known = [] } = /** @type {any} */ (input);
  if (type !== "user" && state.isConfirmed && (type === "begin" || identity === state.identity)) {
    return { state, actions: [] };
  }
  if (type === "told") {
    return {
      state: { identity, isConfirmed: true },
      actions: [
        ...show(state, identity).actions, { do: "keep", known: { identity, holder, person } }, { do: "confirm", identity },
      ],
    };
  }
  // Two identities of one holder have different rights: without an answer, either could be the wrong one.
  const isOwn = (/** @type {Known} */ one) => holder ? one.holder === holder : person && one.person === person;
  const [first, ...others] = new Set(known.filter(isOwn).map((/** @type {Known} */ one) => one.identity));
  return show(state, first && !others.length ? first : null);
}

/** Shows another identity, or none.
 * @param {State} state @param {string | null} identity */
function show(state, identity) {
  if (identity === state.identity) return { state, actions: [] };
  return {
    state: { identity, isConfirmed: false },
    actions: [...(state.identity ? [{ do: "close" }] : []), ...(identity ? [{ do: "open", identity }] : [])],
  };
}
