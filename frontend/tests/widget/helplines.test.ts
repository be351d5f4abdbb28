import { describe, expect, it } from "vitest";
import type { Resource } from "../../src/protocol";
import {
  countriesOf,
  countryName,
  firstCountry,
  linesFor,
  smsLink,
  telLink,
  webLink,
} from "../../src/widget/helplines";

function line(fields: Partial<Resource>): Resource {
  return { name: "Line", phone: "", text: "", url: "", hours: "", country: "", ...fields };
}

const lines = [
  line({ name: "Emergency numbers of the world" }),
  line({ name: "Directory", url: "https://example.org" }),
  line({ name: "Samaritans", country: "GB", phone: "116 123" }),
  line({ name: "Krisentelefon", country: "AT", phone: "142" }),
];

describe("countries", () => {
  it("are offered in order, with everywhere else last", () => {
    expect(countriesOf(lines)).toEqual(["AT", "GB", ""]);
  });

  it("begin with the site's, then the browser's, then everywhere", () => {
    const from = (site: string, languages: readonly string[]) => firstCountry(["AT", "GB", ""], { site, languages });
    expect(from("GB", ["de-AT"])).toBe("GB");
    expect(from("", ["fr", "de-AT"])).toBe("AT");
    expect(from("", ["fr-FR"])).toBe("");
    expect(from("", ["at"])).toBe("");
  });

  it("have names, and the operator's own word where they are no country", () => {
    expect(countryName("GB", "en")).toBe("United Kingdom");
    expect(countryName("not a code", "en")).toBe("not a code");
  });
});

describe("linesFor", () => {
  it("shows a country's lines and the directories for everywhere", () => {
    expect(linesFor(lines, "GB").map(({ name }) => name)).toEqual(["Samaritans", "Directory"]);
  });

  it("shows what there is where the country is not known", () => {
    expect(linesFor(lines, "").map(({ name }) => name)).toEqual(["Emergency numbers of the world", "Directory"]);
  });
});

describe("links", () => {
  it("dial what a person reads", () => {
    expect(telLink("116 123")).toBe("tel:116123");
    expect(telLink("+49 (0800) 111 0 111")).toBe("tel:+4908001110111");
    expect(telLink("ask at the desk")).toBeNull();
    expect(telLink("")).toBeNull();
  });

  it("write the word to the number", () => {
    expect(smsLink("SHOUT to 85258")).toBe("sms:85258?&body=SHOUT");
    expect(smsLink("0477 13 11 14")).toBe("sms:0477131114");
    expect(smsLink("")).toBeNull();
  });

  it("are web addresses and nothing else", () => {
    expect(webLink("https://example.org/help")).toBe("https://example.org/help");
    for (const bad of ["javascript:alert(1)", "data:text/html,x", "//example.org", "", "help"]) {
      expect(webLink(bad)).toBeNull();
    }
  });
});
