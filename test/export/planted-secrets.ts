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
  "token of our own": prefixed("skein_", 43),
  "authorization of any scheme": within(symbols(24), (secret) => `Authorization: ApiKey ${secret}`),
  "authorization without a scheme": within(symbols(24), (secret) => `authorization: ${secret}`),
  "authorization with parameters": within(
    symbols(32),
    (secret) => `Authorization: Digest username="ann", nonce="${secret}", response="${secret}"`,
  ).map(({ text }) => ({ text, secret: text.split('"')[3] as string })),
  "quoted header of a command": within(
    password,
    (secret) => `curl -H "Authorization: Token ${secret}" https://example.com`,
  ),
  "header of a program": within(password, (secret) => `headers: { "Authorization": 'Custom ${secret}' }`),
  "proxy authorization": within(symbols(20), (secret) => `Proxy-Authorization: Negotiate ${secret}`),
  cookie: within(symbols(12), (secret) => `Cookie: theme=dark; session=${secret}; lang=en`),
  "cookie that is set": within(symbols(12), (secret) => `< set-cookie: sid=${secret}; Path=/; HttpOnly`),
  "login of curl": within(password, (secret) => `curl -s -u ann:${secret} https://example.com`),
  "attached login of curl": within(password, (secret) => `curl https://example.com -uann:${secret}`),
  "long login of curl": within(password, (secret) => `curl --fail --user "ann:${secret}" https://example.com`),
  "login in a list of arguments": within(
    password,
    (secret) => `["curl", "-u", "ann:${secret}", "https://example.com"]`,
  ),
  "plain password in YAML": within(
    fc.constantFrom("tiger", "hunter2", "lily"),
    (secret) => `\n  password: ${secret}\n`,
  ).map(({ text, secret }) => ({ text: `${text} `, secret })),
  "plain password in an INI file": within(
    fc.constantFrom("tiger", "s3cr3t"),
    (secret) => `\n[db]\npasswd = ${secret}\n`,
  ),
  "plain password in a connection string": within(
    fc.constantFrom("tiger", "hunter2"),
    (secret) => `host=db user=ann password=${secret} dbname=app`,
  ),
  "password in a semicolon list": within(password, (secret) => `Server=db;Uid=ann;Pwd=${secret};Database=app`),
  "password in a query": within(symbols(6), (secret) => `https://example.com/login?user=ann&pwd=${secret}`),
  "Vault token": prefixed("hvs.", 90),
  "older Vault token": prefixed("s.", 24),
  "Telegram token": whole(symbols(33).map((text) => `1234567890:AA${text}`)),
  "Telegram token in a URL": within(
    symbols(35).map((text) => `1234567890:${text}`),
    (secret) => `https://api.telegram.org/bot${secret}/getMe`,
  ),
  "Sentry address": within(
    symbols(32, "0123456789abcdef"),
    (secret) => `SENTRY=https://${secret}@o12345.ingest.sentry.io/67`,
  ),
  "Sentry token": prefixed("sntryu_", 64, "0123456789abcdef"),
  "Docker login": within(
    password.map((text) => Buffer.from(`ann:${text}`).toString("base64")),
    (secret) => `{"auths":{"https://index.docker.io/v1/":{"auth":"${secret}"}}}`,
  ),
  "npm login": within(
    password.map((text) => Buffer.from(`ann:${text}`).toString("base64")),
    (secret) => `//registry.example.com/:_auth=${secret}`,
  ),
  "Grafana token": prefixed("glsa_", 41),
  "Databricks token": prefixed("dapi", 32, "0123456789abcdef"),
  "Doppler token": prefixed("dp.st.", 43),
  "Notion token": prefixed("ntn_", 46),
  "Mailgun key": prefixed("key-", 32, "0123456789abcdef"),
  "Twilio key": prefixed("SK", 32, "0123456789abcdef"),
  "Square token": prefixed("sq0atp-", 22),
  "PlanetScale password": prefixed("pscale_pw_", 43),
  "Atlassian token": prefixed("ATATT3", 100),
  "Supabase token": prefixed("sbp_", 40, "0123456789abcdef"),
  "RubyGems key": prefixed("rubygems_", 48, "0123456789abcdef"),
  "Tailscale key": prefixed("tskey-auth-", 30),
  "LangSmith key": prefixed("lsv2_pt_", 43, "0123456789abcdef"),
  "Airtable token": whole(fc.tuple(symbols(14), symbols(64, "0123456789abcdef")).map(([a, b]) => `pat${a}.${b}`)),
  "line of YAML": within(symbols(20), (secret) => `  apiKey: ${secret}\n`),
};

/** Every kind of secret that a sanitized export must not hold. */
export const planted: readonly SecretKind[] = Object.entries(kinds).map(([kind, arbitrary]) => ({
  kind,
  arbitrary,
  example: fc.sample(arbitrary, { numRuns: 1, seed: 7 })[0] as Planted,
}));
