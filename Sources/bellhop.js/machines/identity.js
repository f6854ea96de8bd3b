// What a client reads in a token: whose it is, and how long it lives. What the token may do is decided by the service,
// which gives it an identity: see session.js.
import { digest } from "./digest.js";

/** @typedef {{sub?: unknown, iss?: unknown, iat: number, exp: number, nbf?: unknown, jti?: unknown}} Payload the claims
 *   of a token */
/** @typedef {{claims: string | null, subject: string | null, holder: string | null, person: string | null,
 *   lifeMs: number | null}} State `claims`: equal for tokens that differ only in their times and numbers; `holder`: the
 *   digest of issuer and subject; `person`: that of the subject alone */

/** @returns {State} */
export const initial = () => ({ claims: null, subject: null, holder: null, person: null, lifeMs: null });

/** @param {State} _ @param {{payload: Payload}} input @returns {{state: State, actions: any[]}} */
export const receive = (_, { payload }) => ({ state: claimed(payload), actions: [] });

/** Reads the payload of a token. Its life is a length of time: the clocks of devices are wrong too often for dates.
 * @param {Payload} payload @returns {State} */
export function claimed({ iat, exp, nbf, jti, ...rest }) {
  const subject = typeof rest.sub === "string" ? rest.sub : null;
  return {
    claims: JSON.stringify(rest), subject, person: personOf(subject),
    holder: subject === null ? null : digest(JSON.stringify([rest.iss ?? null, subject])),
    lifeMs: exp > iat ? (exp - iat) * 1000 : null,
  };
}

/** @param {string | null} subject */
export const personOf = (subject) => subject === null ? null : digest(JSON.stringify([subject]));
