import { describe, expect, it } from "vitest";
import { endpointViolations, schemaUriReasons } from "../../../../src/domain/admission/endpoint.js";

const reasons = (url: string): string => endpointViolations("endpoint", url).map((v) => v.description).join("\n");

describe("an endpoint", () => {
  it.each([
    "http://127.0.0.1:3001/mcp",
    "https://example.org/mcp?profile=a&page_size=3&monkey=1&maxTokens=5",
    "HTTP://[::1]:80/",
    "http://münchen.example/ü",
  ])("may be %s", (url) => {
    expect(endpointViolations("endpoint", url)).toEqual([]);
  });

  it.each([
    ["file:///etc/passwd", /scheme "file", only http and https are dialled$/],
    ["ws://h/", /scheme "ws"/],
    ["javascript:alert(1)", /scheme "javascript"/],
    ["localhost:3001/mcp", /scheme "localhost", only http and https are dialled \(a host and port need http:\/\/ before them\)/],
    ["mcp.example.org", /no http or https URL: write it as/],
    ["http:host/", /no http or https URL/],
    ["http://", /no http or https URL/],
    ["http://h:99999/", /no http or https URL/],
    ["http://h/#top", /fragment/],
    ["http://h/#", /fragment/],
    [" http://h/", /U\+0020 \(space\) at character 1/],
    ["http://h/\n", /U\+000A \(newline\) at character 10/],
    ["http://h\\@evil/", /U\+005C \(\\\) at character 9/],
    ["http://h/\u202e", /U\+202E \(bidi control\)/],
    [`http://h/${"p".repeat(2_048)}`, /2057 characters long, the limit is 2048/],
  ])("may not be %j", (url, reason) => {
    expect(reasons(url)).toMatch(reason);
  });

  it.each([
    "http://bob:hunter2@h/",
    "http://hunter2@h/",
    "https://h/?api_key=hunter2",
    "https://h/?tavilyApiKey=hunter2",
    "https://h/?X-Amz-Signature=hunter2",
    "https://h/?access_token=hunter2&x=1",
    "https://h/?key=hunter2",
    "https://h/?%74oken=hunter2",
    "https://h/?auth=hunter2#f",
  ])("may not carry a secret, and %s is never repeated", (url) => {
    expect(reasons(url)).toMatch(/credential|password/);
    expect(reasons(url)).not.toContain("hunter2");
  });

  it("gives all its faults at once", () => {
    expect(endpointViolations("endpoint", "http://a:b@h/?token=1&sig=2#f")).toHaveLength(4);
  });
});

describe("a schema_uri", () => {
  it("is any absolute URI without secrets", () => {
    expect(schemaUriReasons("urn:x:y")).toEqual([]);
    expect(schemaUriReasons("mcp+file:///a#b")).toEqual([]);
    expect(schemaUriReasons("relative/x").join()).toMatch(/no absolute URI/);
    expect(schemaUriReasons("https://a:b@h/").join()).toMatch(/password/);
    expect(schemaUriReasons("me:secret@host/x").join()).toMatch(/user name and password/);
  });
});
