import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSanitizer, sanitizeText } from "../../src/export/index.ts";
import { createSteppedSanitizer } from "../../src/export/sanitizer.ts";
import { planted } from "./planted-secrets.ts";

describe("a text without its secrets", () => {
  test.for(planted.map(({ kind, example }) => [kind, example] as const))("has no %s", ([, { text, secret }]) => {
    const sanitized = sanitizeText(`before ${text} after`);
    expect(sanitized).not.toContain(secret);
    expect(sanitized).toMatch(/^before [\s\S]*\[secret 1\]/);
  });

  test("keeps texts that only look like a secret", () => {
    const harmless = [
      "max_tokens=4096 and totalTokens: 128",
      "const token = readToken(stream);",
      "password: must contain eight characters",
      "PASSWORD=${DB_PASSWORD} API_KEY=$API_KEY",
      "apiKey: process.env.API_KEY",
      '{"token":{"type":"string"},"password":"<your password>"}',
      "https://example.com:8080/a@b and mailto:ann@example.com",
      "commit 3f786850e387550fdab836ed7e6dc881de23001b",
      "sk-learn-like-names-of-packages",
      "bearer authentication",
      "019375a2-7c1e-7bb8-b0a1-0d9c5e2f4a6b",
      "https://example.com/home/page",
      ...ORDINARY,
    ];
    for (const text of harmless) expect(sanitizeText(text)).toBe(text);
  });

  test("has none right after a JSON escape, a percent-encoded byte or a terminal colour", () => {
    const secret = `ghp_${"a1".repeat(18)}`;
    for (const before of ["\\n", "%20", "\\u0020", "\u001b[31m"])
      expect(createSanitizer().sanitize(`log: "x${before}${secret}"`)).toBe(`log: "x${before}[secret 1]"`);
  });

  test("numbers equal secrets equally, and different secrets differently", () => {
    const [one, two] = [`ghp_${"a1".repeat(18)}`, `ghp_${"b2".repeat(18)}`];
    expect(sanitizeText(`${one} ${two} ${one}`)).toBe("[secret 1] [secret 2] [secret 1]");
  });

  test("replaces a known secret also without any context, before and after it was named", () => {
    const text = "tiger/lily-42 works\nDB_PASSWORD=tiger/lily-42\nsee ?p=tiger%2Flily-42";
    expect(sanitizeText(text)).toBe("[secret 1] works\nDB_PASSWORD=[secret 1]\nsee ?p=[secret 1]");
  });

  test("does not replace a common word everywhere if it was used as a password once", () => {
    expect(sanitizeText("the password is used as PASSWORD=password")).toBe(
      "the password is used as PASSWORD=[secret 1]",
    );
  });

  test("replaces home directories by a tilde", () => {
    const text =
      "/home/ann/project /Users/ann.b/x file:///home/ann C:\\Users\\Ann B\\x C:\\\\Users\\\\ann\\\\x /root/.ssh";
    expect(sanitizeText(text)).toBe("~/project ~/x file://~ ~\\x ~\\\\x ~/.ssh");
    expect(createSanitizer({ homeDirectory: "/var/lib/build" }).sanitize("/var/lib/build/x /var/lib/builder")).toBe(
      "~/x /var/lib/builder",
    );
  });

  test("is the same when it is sanitized again", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(...planted.map(({ arbitrary }) => arbitrary), filler), { maxLength: 6 }),
        (parts) => {
          const once = sanitizeText(parts.map(({ text }) => text).join(" "));
          expect(sanitizeText(once)).toBe(once);
        },
      ),
      { numRuns: 100 },
    );
  });

  test.for([
    "a",
    "-",
    "=",
    "\\",
    "eyJ-",
    "-eyJ",
    "sk-",
    'token="',
    "password='",
    "://a:",
    "-----BEGIN PRIVATE KEY-----",
    "Bearer ",
    "?token=",
    "--token ",
    "/home/",
    "%3A%2F%2F",
    "[[",
    '{"a":',
    "PASSWORD=",
    "C:\\Users\\",
    "\u001b[",
    "curl -u ",
    'curl "-u',
    "curl ",
    "authorization: a ",
    'authorization:"',
    "authorization: a=b,",
    "cookie: a=b;",
    "cookie:",
    "password: ",
    "password=",
    "password",
    "\npassword:",
    "_auth=",
    "/bot1",
    "s.",
    "hvs.",
    "skein_",
    "pat",
    "0",
    "a.atlasv1.",
    "machine a",
    "machine a.b ",
    "machine a.b login a ",
    "login a password ",
    "default login ",
    "mysql ",
    "mysql -",
    "docker login ",
    "docker login -p ",
    "docker a ",
    "echo a |",
    "echo a ",
    "sshpass -p",
    "redis-cli -a ",
    'authorization: a="',
    'authorization: a=\\"',
    'authorization","',
    '-H "token',
    "-H token:",
    "curl -b a=b;",
    "curl -b",
    "curl -uuuuuu",
    "curl \\\n",
    "http -a ",
    "--password '",
    '"--password", ',
    "\nauthorization: a1",
    'token", "',
    'name":"token","value',
    "name:a_token\n",
    "openssl -passin pass:",
  ])("is fast for a long line of %j", (piece) => {
    const line = piece.repeat(Math.ceil(200_000 / piece.length));
    expect(sanitizeText(line).length).toBeGreaterThan(0);
  });
});

test("a long text is searched in short steps, and a command on the boundary of two of them has no secret", () => {
  const secrets: string[] = [];
  const text = Array.from({ length: 200 }, (_, i) => {
    const secret = `p9-${i}-x`;
    secrets.push(secret);
    const line = [`docker login -u ann -p ${secret}`, `curl -u ann:${secret} x`, `curl -b 'sid=${secret}' x`][i % 3];
    return `${"openssl ".repeat(300 + i * 7)}\n${line}\n`;
  }).join("");
  const sanitizer = createSteppedSanitizer();
  let longestMs = 0;
  const steps = sanitizer.sanitizeSteps(text);
  for (;;) {
    const startMs = performance.now();
    const { done, value } = steps.next();
    longestMs = Math.max(longestMs, performance.now() - startMs);
    if (done !== true) continue;
    // Compared as booleans: a difference of these texts would be printed whole.
    expect(secrets.filter((secret) => value.includes(secret))).toEqual([]);
    const rest = secrets.reduce((left, secret) => left.replace(secret, ""), text).replaceAll("sid=", "");
    expect(value.replaceAll(/\[secret \d+\]/g, "") === rest).toBe(true);
    break;
  }
  // The whole text at once takes a second or more for one pattern.
  expect(longestMs).toBeLessThan(500);
});

test("long repetitions of fragments of secrets are sanitized in acceptable time", () => {
  const fragments = planted
    .flatMap(({ example }) => example.text.split(/(?<=[^A-Za-z0-9])/))
    .filter((text) => text.length < 24);
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...fragments), { minLength: 1, maxLength: 4 }), (parts) => {
      const piece = parts.join("");
      expect(sanitizeText(piece.repeat(Math.ceil(50_000 / piece.length))).length).toBeGreaterThan(0);
    }),
    { numRuns: 60 },
  );
});

describe("a value without its secrets", () => {
  test("keeps its keys, and detects a secret by its key", () => {
    const value = { password: "hunter2", apiKeys: ["first one", "second one"], user: "ann", port: 80, token: null };
    expect(createSanitizer().sanitize(value)).toEqual({
      password: "[secret 1]",
      apiKeys: ["[secret 2]", "[secret 3]"],
      user: "ann",
      port: 80,
      token: null,
    });
  });

  test("has none as the value of an item that is named by another key", () => {
    const value = {
      env: [
        { name: "DB_PASSWORD", value: "hunter2" },
        { name: "PORT", value: "80" },
      ],
    };
    expect(createSanitizer().sanitize(value)).toEqual({
      env: [
        { name: "DB_PASSWORD", value: "[secret 1]" },
        { name: "PORT", value: "80" },
      ],
    });
  });

  test("has none in a text that is JSON, however it is escaped there", () => {
    const text = '{"a":"\\u0041KIAABCDEFGH12345678","b":"{\\"clientSecret\\":\\"hunter2\\"}","n":1}';
    expect(createSanitizer().sanitize(text)).toBe(
      '{"a":"[secret 2]","b":"{\\"clientSecret\\":\\"[secret 1]\\"}","n":1}',
    );
  });

  test("has none in a text file, and does not change other files", () => {
    const encode = (text: string) => Buffer.from(text).toString("base64");
    const text = { type: "file", mediaType: "text/plain", data: encode("API_KEY=abc") };
    const binary = {
      type: "image",
      mediaType: "image/png",
      data: Buffer.from([0x89, 0x50, 0xff, 0x00]).toString("base64"),
    };
    expect(createSanitizer().sanitize([text, binary])).toEqual([
      { ...text, data: encode("API_KEY=[secret 1]") },
      binary,
    ]);
  });

  test("is not changed itself", () => {
    const value = Object.freeze({ password: "hunter2", list: Object.freeze(["API_KEY=abc"]) });
    createSanitizer().sanitize(value);
    expect(value).toEqual({ password: "hunter2", list: ["API_KEY=abc"] });
  });
});

/** Lines of prose, code, settings and logs without secrets. */
const ORDINARY: readonly string[] = [
  "Authorization: the user must be an administrator.",
  "authorization: required",
  "Send the header Authorization: Bearer <token> with each request.",
  "The Authorization header was missing",
  "headers: { authorization: `Bearer ${token}` }",
  "const authorization = request.headers.get(name);",
  "Cookie: <name>=<value>",
  "cookies: chocolate and vanilla",
  "if (cookie === undefined) return null;",
  "curl -u $USER:$PASSWORD https://example.com",
  "curl -sSL -o out.txt https://example.com/a:b",
  "docker run -u 1000:1000 image",
  "password: string;",
  "password: user.password,",
  'const hidden = ["password", "username"];',
  'translate("password", "Please enter your password")',
  '<input name="token" value="x">',
  "name: password, value: number;",
  "  password: newPassword,",
  "password = readPassword()",
  "password=getPassword() secret=None",
  "The password: it must be changed every year.",
  "PWD=/work/project OLDPWD=/work",
  "pwd: /work/project",
  "Enter password:",
  "secret: true",
  '{"auth":"required","token":null}',
  '{"auth":{"type":"basic"}}',
  "auth: oauth2",
  "s.toLowerCase() b.length r.statusCode",
  "import s from './s'; s.abcdefghijklmnopqrstuvwx",
  "git clone https://git@example.com/a.git",
  "at 12:30:45 on 2024-01-01T10:00:00.000Z",
  "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  "SKU 12345 and SKIP 7",
  "skein_schema and skein_0123456789abcdef0123456789abcdef",
  "version 1.2.3-us1",
  "function secret_santa_2024(names) {}",
  "keyboard: us, token bucket: 50 per second",
  "tokens: 128, cost: 0.01",
  "The machine learning password manager is new.",
  "This machine needs a login and a password from your team.",
  "the default password is long, and the default login is admin",
  "mysql -h db -u ann -p shop",
  "mysql -P 3306 --protocol=tcp",
  "mkdir -p src/a && docker login registry.example.com",
  "docker run -p 8080:80 image",
  "docker login -u ann --password-stdin",
  "docker login -p $TOKEN -u ann",
  "docker login -p <password>",
  "redis-cli -a $REDIS_PASSWORD ping",
  "sshpass -e ssh ann@host",
  "curl -b cookies.txt -c cookies.txt https://example.com",
  "curl --cookie-jar jar.txt https://example.com/?a=b",
  "curl -H 'Accept: application/json' -H 'X-Trace: 12'",
  "curl -H 'X-Api-Key: $API_KEY'",
  "curl -sSfL https://example.com/install.sh | sh -s -- -b /usr/local/bin",
  "Authorization: oauth2",
  "Authorization: see chapter 12",
  'response.headers.set("Authorization", header)',
  "http -a is an option of HTTPie",
  "https://example.com/a-b?x=1",
  "unzip -o a.zip && zip -r b.zip a",
  "openssl rsa -in a.pem -passin env:PASS",
  "git commit --amend --no-edit --password-file=/run/a",
];

const filler = fc.string({ maxLength: 20 }).map((text) => ({ text, secret: null }));
