export interface Versioned {
  epoch?: string | null;
  version: number;
}

/** Returns whether the offered version replaces the held one. Versions count within their epoch. Another epoch,
 * which a restore starts, always replaces: changes of the previous epoch may never have happened. */
export function isNewer(held: Versioned | null | undefined, offered: Versioned) {
  return !held || (held.epoch ?? "") !== (offered.epoch ?? "") || offered.version > held.version;
}
