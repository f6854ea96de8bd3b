// Decides which of the identities that a device knows is shown before the service has answered, and what is closed when
// it answers. An identity is the service's digest of the rights of a token (R-SCH-FR-001).

/** @typedef {{identity: string, holder: string | null, person: string | null}} Known the identity of a token, with the
 *   digests of the token's issuer and subject, and of its subject alone */
/** @typedef {{identity: string | null, isConfirmed: boolean}} State */

/** @returns {State} */
export const initial = () => ({ identity: null, isConfirmed: false });

/** @param {State} state @param {import("./inputs").SessionInput} input @returns {{state: State, actions: any[]}} */
export function receive(state, input) {
  switch (input.type) {
    // Two identities of one holder have different rights: without an answer, either could be the wrong one.
    case "begin": {
      const { holder, person, known } = input;
      const isOwn = (/** @type {Known} */ one) => holder ? one.holder === holder : person !== null && one.person === person;
      const own = [...new Set(known.filter(isOwn).map(({ identity }) => identity))];
      return state.isConfirmed ? { state, actions: [] } : show(state, own.length === 1 ? own[0] : null);
    }
    // The service's answer.
    case "told": {
      const { identity, holder, person } = input;
      const known = { identity, holder, person };
      if (state.isConfirmed && state.identity === identity) return { state, actions: [] };
      const { actions } = show(state, identity);
      return {
        state: { identity, isConfirmed: true },
        actions: [...actions, { do: "keep", known }, { do: "confirm", identity }],
      };
    }
    case "user": return show(state, null);
    default: return { state, actions: [] };
  }
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
