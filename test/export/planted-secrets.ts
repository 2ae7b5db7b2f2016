import fc from "fast-check";

/** A secret as it stands in a text, with what makes it one. */
export interface Planted {
  readonly text: string;
  readonly secret: string;
}

/** A kind of secret: how to make one, and one of them. */
export interface SecretKind {
  readonly kind: string;
  readonly arbitrary: fc.Arbitrary<Planted>;
  readonly example: Planted;
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const symbols = (length: number, alphabet = LETTERS) =>
  fc
    .array(fc.constantFrom(...alphabet), { minLength: length, maxLength: length })
    .map((all) => `7${all.join("").slice(1)}`);
const word = fc.constantFrom("app", "db", "My", "prod_", "");

/** A password as people choose them, without what would end it where it stands. */
const password = fc
  .array(fc.constantFrom(..."abcXYZ0189!#%*+.^_~-"), { minLength: 6, maxLength: 20 })
  .map((all) => `p9${all.join("")}`);

const whole = (make: fc.Arbitrary<string>): fc.Arbitrary<Planted> => make.map((secret) => ({ text: secret, secret }));
const within = (make: fc.Arbitrary<string>, place: (secret: string, name: string) => string): fc.Arbitrary<Planted> =>
  fc.tuple(make, word).map(([secret, name]) => ({ text: place(secret, name), secret }));
const prefixed = (prefix: string, length: number, alphabet?: string) =>
  whole(symbols(length, alphabet).map((text) => `${prefix}${text}`));

const kinds: Readonly<Record<string, fc.Arbitrary<Planted>>> = {
  "Anthropic key": prefixed("sk-ant-api03-", 90),
  "OpenAI key": prefixed("sk-proj-", 48),
  "GitHub token": prefixed("ghp_", 36),
  "fine-grained GitHub token": prefixed("github_pat_", 60),
  "GitLab token": prefixed("glpat-", 20),
  "Slack token": prefixed("xoxb-", 40),
  "Stripe key": prefixed("sk_live_", 24),
  "Google API key": prefixed("AIza", 35),
  "Google OAuth token": prefixed("ya29.", 60),
  "AWS access key id": prefixed("AKIA", 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
  "AWS secret access key": within(symbols(40, `${LETTERS}+/`), (secret) => `aws_secret_access_key = ${secret}`),
  "Hugging Face token": prefixed("hf_", 34),
  "npm token": prefixed("npm_", 36),
  "JSON web token": whole(fc.tuple(symbols(30), symbols(60), symbols(43)).map(([a, b, c]) => `eyJ${a}.eyJ${b}.${c}`)),
  "bearer token": within(symbols(32), (secret) => `Authorization: Bearer ${secret}`),
  "basic authorization": within(
    password,
    (secret) => `Authorization: Basic ${Buffer.from(`ann:${secret}`).toString("base64")}`,
  ).map(({ text }) => ({ text, secret: text.split(" ")[2] as string })),
  "private key": whole(
    fc
      .tuple(symbols(64), symbols(64))
      .map(([a, b]) => `-----BEGIN RSA PRIVATE KEY-----\n${a}\n${b}\n-----END RSA PRIVATE KEY-----`),
  ),
  "private key that was cut off": whole(symbols(64).map((a) => `-----BEGIN OPENSSH PRIVATE KEY-----\n${a}`)),
  "password in a URL": within(password, (secret) => `postgres://ann:${secret}@db.example.com/app`),
  "password in an encoded URL": within(symbols(12), (secret) => `?to=postgres%3A%2F%2Fann%3A${secret}%40db`),
  "variable of an .env file": within(password, (secret, name) => `\n${name.toUpperCase()}PASSWORD=${secret}\n`),
  "quoted variable": within(password, (secret, name) => `${name}API_KEY="${secret} with space"`),
  "member of a JSON object": within(password, (secret, name) => `{"${name}clientSecret":"${secret}"}`),
  "parameter of a URL": within(symbols(10), (secret) => `https://example.com/a?x=1&access_token=${secret}&y=2`),
  "option of a command": within(password, (secret) => `login --password ${secret} --verbose`),
  "line of YAML": within(symbols(20), (secret) => `  apiKey: ${secret}\n`),
};

/** Every kind of secret that a sanitized export must not hold. */
export const planted: readonly SecretKind[] = Object.entries(kinds).map(([kind, arbitrary]) => ({
  kind,
  arbitrary,
  example: fc.sample(arbitrary, { numRuns: 1, seed: 7 })[0] as Planted,
}));
