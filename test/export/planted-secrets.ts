import fc from "fast-check";

/** A secret in a text, with the context that identifies it. */
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

/** A typical password, without characters that would end it in its context. */
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
  "header set by a key in brackets": within(password, (secret) => `headers["Authorization"] = "${secret}"`),
  "variable set by a key in brackets": within(password, (secret) => `os.environ['STRIPE_KEY'] = '${secret}'`),
  "header set by a call": within(symbols(24), (secret) => `request.Header.Add("X-Api-Key", "${secret}")`),
  "header with a name and a value": within(password, (secret) => `log: {"name":"Authorization","value":"${secret}"}`),
  "variable with a name and a value": within(
    password,
    (secret) => `log: {\\"name\\":\\"DB_PASSWORD\\",\\"value\\":\\"${secret}\\"}`,
  ),
  "variable of a YAML list": within(symbols(20), (secret) => `- name: DB_PASSWORD\n  value: ${secret}\n`),
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
  "digest with a realm of two words": within(
    symbols(32, "0123456789abcdef"),
    (secret) =>
      `Authorization: Digest username="ann", realm="my shop", nonce="abc", uri="/a", qop=auth, nc=00000001, response="${secret}", opaque="x"`,
  ),
  "digest of a proxy": within(
    symbols(32, "0123456789abcdef"),
    (secret) => `> proxy-authorization: Digest username="ann", realm="a b", response="${secret}"`,
  ),
  "Hawk inside of JSON": within(
    symbols(40),
    (secret) => `log: {"headers":{"Authorization":"Hawk id=\\"dh37\\", ts=\\"13538\\", mac=\\"${secret}=\\""}}`,
  ),
  "Hawk inside of JSON inside of JSON": within(
    symbols(40),
    (secret) => String.raw`"{\"Authorization\":\"Hawk id=\\\"dh37\\\", mac=\\\"${secret}=\\\"\"}"`,
  ),
  "short authorization without a scheme": within(
    password.map((text) => text.slice(0, 7).replace(/[-.]$/, "x")),
    (secret) => `GET / HTTP/1.1\nAuthorization: ${secret}\nHost: a`,
  ),
  "authorization that a program sets": within(password, (secret) => `request.setHeader("Authorization", "${secret}")`),
  "authorization in a query": within(password, (secret) => `https://example.com/?authorization=${secret}`).map(
    ({ text, secret }) => ({ text: text.replace("#", "x"), secret: secret.replace("#", "x") }),
  ),
  "header of a command with a key": within(password, (secret) => `curl -H 'X-Api-Key: ${secret}' https://example.com`),
  "header of a command with a token": within(
    password,
    (secret) => `curl --header="PRIVATE-TOKEN: ${secret}" https://example.com`,
  ),
  "cookie of curl": within(symbols(12), (secret) => `curl -b 'sid=${secret}; theme=dark' https://example.com`),
  "long cookie of curl": within(symbols(12), (secret) => `curl -s --cookie sid=${secret} https://example.com`),
  "bundled cookie of curl": within(symbols(12), (secret) => `curl -sSb "sid=${secret}" https://example.com`),
  "bundled login of curl": within(password, (secret) => `curl -sSuann:${secret} https://example.com`),
  "login of curl on another line": within(
    password,
    (secret) => `curl -s \\\n  -X POST \\\n  -u 'ann:${secret}' \\\n  https://example.com`,
  ),
  "login of a proxy": within(password, (secret) => `curl -x proxy:3128 -U ann:${secret} https://example.com`),
  "long login of a proxy": within(password, (secret) => `curl --proxy-user=ann:${secret} https://example.com`),
  "login of HTTPie": within(password, (secret) => `http -a ann:${secret} GET https://example.com`),
  "netrc on one line": within(password, (secret) => `machine api.example.com login ann password ${secret}`),
  "netrc on several lines": within(
    password,
    (secret) => `machine api.example.com\n  login ann\n  password ${secret}\n`,
  ),
  "netrc in JSON": within(password, (secret) => `"machine api.example.com\\n\\tlogin ann\\n\\tpassword ${secret}\\n"`),
  "netrc without a login": within(password, (secret) => `machine api.example.com password ${secret}`),
  "default of a netrc": within(password, (secret) => `default login anonymous password ${secret}`),
  "quoted words of a netrc": within(password, (secret) => `machine api.example.com login "ann" password "${secret}"`),
  "netrc of this machine": within(password, (secret) => `machine localhost password ${secret}`),
  "login of docker in a list of arguments": within(
    password,
    (secret) => `["docker", "login", "-u", "ann", "-p", "${secret}"]`,
  ),
  "login of vault": within(password, (secret) => `vault login ${secret}`),
  "setting of aws": within(password, (secret) => `aws configure set aws_secret_access_key ${secret}`),
  "setting of npm": within(password, (secret) => `npm config set //registry.example.com/:_authToken ${secret}`),
  "quoted parameter of a header with a space before its colon": within(
    password,
    (secret) => `Authorization : Digest response="${secret}"`,
  ),
  "signature of a header after a key": within(
    password,
    (secret) =>
      `Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=${secret}`,
  ),
  "login of docker by a pipe": within(password, (secret) => `echo "${secret}" | docker login -u ann --password-stdin`),
  "login of docker by a pipe, with printf": within(
    password,
    (secret) => `printf '%s' ${secret} | podman login --password-stdin registry.example.com`,
  ),
  "login of docker": within(password, (secret) => `docker login -u ann -p ${secret} registry.example.com`),
  "attached login of docker": within(password, (secret) => `docker login -u ann -p'${secret} x' registry.example.com`),
  "login of helm": within(password, (secret) => `helm registry login -u ann -p ${secret} registry.example.com`),
  "quoted option": within(password, (secret) => `login --password '${secret} and more' --verbose`),
  "option with an equals sign": within(password, (secret) => `login --db-password="${secret} x" --verbose`),
  "option in a list of arguments": within(password, (secret) => `["login", "--password", "${secret}"]`),
  "password of sshpass": within(password, (secret) => `sshpass -p ${secret} ssh ann@host`),
  "attached password of sshpass": within(password, (secret) => `sshpass -p'${secret}' ssh ann@host`),
  "password of mysql": within(password, (secret) => `mysql -h db -u ann -p${secret} shop`),
  "quoted password of mysqldump": within(password, (secret) => `mysqldump -uann -p"${secret} x" shop`),
  "password of mongosh": within(password, (secret) => `mongosh --host db -u ann -p ${secret} shop`),
  "password of PostgreSQL": within(password, (secret) => `PGPASSWORD='${secret} x' psql -h db`),
  "variable of sshpass": within(password, (secret) => `SSHPASS=${secret} sshpass -e ssh host`),
  "password of redis-cli": within(password, (secret) => `redis-cli -h db -a ${secret} ping`),
  "long password of redis-cli": within(password, (secret) => `redis-cli --pass ${secret} ping`),
  "password of openssl": within(password, (secret) => `openssl rsa -in a.pem -passin pass:${secret} -out b.pem`),
  "password of openssl enc": within(password, (secret) => `openssl enc -aes-256-cbc -k ${secret} -in a`),
  "password of twine": within(password, (secret) => `twine upload -u ann -p ${secret} dist/*`),
  "password of sqlcmd": within(password, (secret) => `sqlcmd -S db -U sa -P ${secret} -Q "select 1"`),
  "password of smbclient": within(password, (secret) => `smbclient //nas/share -U ann%${secret} -c ls`),
  "password of lftp": within(password, (secret) => `lftp -u ann,${secret} sftp://nas`),
  "token of gh": within(password, (secret) => `gh auth login --with-token <<< ${secret}`),
  "password of ldapsearch": within(password, (secret) => `ldapsearch -x -D cn=ann -w ${secret} -b dc=a`),
  "password of zip": within(password, (secret) => `zip -r -P ${secret} a.zip a`),
  "line of YAML": within(symbols(20), (secret) => `  apiKey: ${secret}\n`),
};

/** Every kind of secret that a sanitized export must not contain. */
export const planted: readonly SecretKind[] = Object.entries(kinds).map(([kind, arbitrary]) => ({
  kind,
  arbitrary,
  example: fc.sample(arbitrary, { numRuns: 1, seed: 7 })[0] as Planted,
}));
