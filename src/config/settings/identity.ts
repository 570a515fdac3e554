/** Who is let in. */
import { PATH, type Setting, type TextRule } from "../setting.js";

const KEY_SET: TextRule = {
  pattern: /^(?!http:\/\/(?!localhost[:/]|127\.0\.0\.1[:/]|\[::1\][:/]))(?!https?:\/\/[^/]*@)[^\0\s]{1,2048}$/s,
  expected: "a path, or an https URL without user information (http on loopback)",
  placeholder: "file|url",
};
const CLAIM: TextRule = { pattern: /^[\x21-\x7e]{1,1024}$/, expected: "1 to 1,024 characters of visible ASCII", placeholder: "claim" };
/** Signatures that only the holder of a private key can make. */
const SIGNATURES = [
  "ES256",
  "ES384",
  "ES512",
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "EdDSA",
  "Ed25519",
];

export const IDENTITY: readonly Setting[] = [
  {
    name: "tokensFile",
    flag: "--tokens-file",
    variable: "TOOLCRIB_TOKENS_FILE",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "JSON file of static tokens by hash (`toolcrib token new` makes entries); read again when it changes.",
  },
  {
    name: "jwtJwks",
    flag: "--jwt-jwks",
    variable: "TOOLCRIB_JWT_JWKS",
    fallback: "",
    kind: { kind: "optional", rule: KEY_SET },
    help: "Key set that JWTs are judged by: a file or an https URL; needs issuer and audience.",
  },
  {
    name: "jwtIssuer",
    flag: "--jwt-issuer",
    variable: "TOOLCRIB_JWT_ISSUER",
    fallback: "",
    kind: { kind: "optional", rule: CLAIM },
    help: "The `iss` that a JWT must have.",
  },
  {
    name: "jwtAudience",
    flag: "--jwt-audience",
    variable: "TOOLCRIB_JWT_AUDIENCE",
    fallback: "",
    kind: { kind: "optional", rule: CLAIM },
    help: "The `aud` that a JWT must have.",
  },
  {
    name: "jwtAlgorithms",
    flag: "--jwt-algorithms",
    variable: "TOOLCRIB_JWT_ALGORITHMS",
    fallback: "ES256,RS256,EdDSA",
    kind: { kind: "choices", of: SIGNATURES },
    help: "Signature algorithms that a JWT may have, with commas between them.",
  },
  {
    name: "tlsCert",
    flag: "--tls-cert",
    variable: "TOOLCRIB_TLS_CERT",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of this replica's certificate and chain: every listener speaks TLS; read again when it changes.",
  },
  {
    name: "tlsKey",
    flag: "--tls-key",
    variable: "TOOLCRIB_TLS_KEY",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of the certificate's private key.",
  },
  {
    name: "tlsClientCa",
    flag: "--tls-client-ca",
    variable: "TOOLCRIB_TLS_CLIENT_CA",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "PEM file of the authorities whose client certificates identify callers; needs --certificates-file.",
  },
  {
    name: "certificatesFile",
    flag: "--certificates-file",
    variable: "TOOLCRIB_CERTIFICATES_FILE",
    fallback: "",
    kind: { kind: "optional", rule: PATH },
    help: "JSON file: grants by URI or DNS name of a client certificate; read again when it changes.",
  },
];
