// What a client reads in a token: whose it is, and how long it lives. What the token may do is decided by the service,
// which gives it an identity: see session.js.
import { digest } from "./digest.js";
import type { Outcome } from "../actions.js";

/** The claims of a token. */
interface Payload {
  sub?: unknown;
  iss?: unknown;
  iat: number;
  exp: number;
  nbf?: unknown;
  jti?: unknown;
}

/** `claims`: equal for tokens that differ only in their times and numbers; `holder`: the digest of issuer and subject;
 * `person`: that of the subject alone. */
export interface State {
  claims: string | null;
  subject: string | null;
  holder: string | null;
  person: string | null;
  lifeMs: number | null;
}

export const initial = (): State => ({ claims: null, subject: null, holder: null, person: null, lifeMs: null });

export const receive = (_: State, { payload }: { payload: Payload }): Outcome<State, never> =>
  ({ state: claimed(payload), actions: [] });

/** Reads the payload of a token. Its life is a length of time: the clocks of devices are wrong too often for dates. */
export function claimed({ iat, exp, nbf, jti, ...rest }: Payload): State {
  const subject = typeof rest.sub === "string" ? rest.sub : null;
  return {
    claims: JSON.stringify(rest), subject, person: personOf(subject),
    holder: subject === null ? null : digest(JSON.stringify([rest.iss ?? null, subject])),
    lifeMs: exp > iat ? (exp - iat) * 1000 : null,
  };
}

export const personOf = (subject: string | null) => subject === null ? null : digest(JSON.stringify([subject]));
