// SHA-256 (FIPS 180-4) as a pure function: WebCrypto is asynchronous, and exists neither on plain http nor in React Native.

/** The first 64 primes give the constants, as the fractions of their roots. */
const primes: number[] = [];
for (let n = 2; primes.length < 64; n += 1) if (primes.every((prime) => n % prime)) primes.push(n);
const fractions = (root: (x: number) => number) => primes.map((prime) => (root(prime) % 1) * 2 ** 32 | 0);
const constants = fractions(Math.cbrt);
const first = fractions(Math.sqrt).slice(0, 8);

/** Returns the digest of a text's UTF-8 bytes in hexadecimal. React Native has no TextEncoder. */
export function digest(text: string) {
  const bytes = unescape(encodeURIComponent(text));
  const { length } = bytes;
  const words = new Int32Array(((length + 8 >> 6) + 1) * 16);
  for (let i = 0; i <= length; i += 1) words[i >> 2] |= (i < length ? bytes.charCodeAt(i) : 128) << 24 - i % 4 * 8;
  words[words.length - 1] = length * 8;
  let hash = first;
  for (let at = 0; at < words.length; at += 16) hash = added(hash, block(hash, [...words.subarray(at, at + 16)]));
  return hash.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

const added = (a: number[], b: number[]) => a.map((one, i) => one + b[i] | 0);
const turned = (x: number, ...by: number[]) => by.reduce((sum, n) => sum ^ (x >>> n | x << 32 - n), 0);

/** @param w the words of one block */
function block(hash: number[], w: number[]) {
  let [a, b, c, d, e, f, g, h] = hash;
  for (let i = 0; i < 64; i += 1) {
    if (i > 15) {
      const [x, y] = [w[i - 15], w[i - 2]];
      w[i] = w[i - 16] + (turned(x, 7, 18) ^ x >>> 3) + w[i - 7] + (turned(y, 17, 19) ^ y >>> 10) | 0;
    }
    const t = h + turned(e, 6, 11, 25) + (e & f ^ ~e & g) + constants[i] + w[i];
    [a, b, c, d, e, f, g, h] = [t + turned(a, 2, 13, 22) + (a & b ^ a & c ^ b & c) | 0, a, b, c, d + t | 0, e, f, g];
  }
  return [a, b, c, d, e, f, g, h];
}
