/** @typedef {{epoch?: string | null, version: number}} Versioned */

/** Returns whether the offered version replaces the held one. Versions count within their epoch. Another epoch,
 * which a restore starts, always replaces: changes of the previous epoch may never have happened.
 * @param {Versioned | null | undefined} held @param {Versioned} offered */
export function isNewer(held, offered) {
  return !held || (held.epoch ?? "") !== (offered.epoch ?? "") || offered.version > held.version;
}
