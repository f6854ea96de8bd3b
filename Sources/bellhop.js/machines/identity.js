// Identity of a token: the claims that decide what it may do. Tokens of one identity share a stream, a cursor and an
// outbox.

/** @typedef {{sub?: unknown, iat?: unknown, exp: number, nbf?: unknown, jti?: unknown}} Payload the claims of a token */
/** @typedef {{identity: string | null, subject: string | null, expiresAt: number | null}} State */

/** @returns {State} */
export const initial = () => ({ identity: null, subject: null, expiresAt: null });

/** @param {State} state @param {{payload: Payload}} input @returns {{state: State, actions: any[]}} */
export const receive = (state, { payload }) => ({ state: { ...state, ...claimed(payload) }, actions: [] });

/** Returns every claim of a token's payload but those that differ between two tokens of one identity.
 * @param {Payload} payload @returns {State} */
export function claimed({ iat, exp, nbf, jti, ...rest }) {
  return {
    identity: JSON.stringify(rest, sorted), subject: typeof rest.sub === "string" ? rest.sub : null,
    expiresAt: exp > 0 ? exp * 1000 : null,
  };
}

// Issuers may list the same claims and roles in another order.
/** @param {string} _ @param {unknown} value */
const sorted = (_, value) => Array.isArray(value) ? [...value].sort()
  : value && typeof value === "object" ? Object.fromEntries(Object.entries(value).sort()) : value;
