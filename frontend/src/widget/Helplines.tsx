// Lines answered by people, for one country at a time. Shown by the help sheet and by the safety card.

import { useState } from "preact/hooks";
import { spokenLocale, t } from "../i18n";
import type { Resource } from "../protocol";
import { Icon, LINK, MESSAGE, PHONE } from "../shared/icons";
import { countriesOf, countryName, firstCountry, linesFor, smsLink, telLink, webLink } from "./helplines";

export function Line({ line }: { readonly line: Resource }) {
  const call = telLink(line.phone);
  const message = smsLink(line.text);
  const web = webLink(line.url);
  return (
    <li class="line">
      <div class="line-who">
        <strong>{line.name}</strong>
        {line.hours !== "" && <span class="quiet">{line.hours}</span>}
      </div>
      <div class="line-ways">
        {call && (
          <a class="button strong" href={call}>
            <Icon path={PHONE} />
            <span>
              {t("Call")} <bdi>{line.phone}</bdi>
            </span>
          </a>
        )}
        {message && (
          <a class="button" href={message}>
            <Icon path={MESSAGE} />
            <span>
              {t("Text")} <bdi>{line.text}</bdi>
            </span>
          </a>
        )}
        {web && (
          <a class="button" href={web} target="_blank" rel="noopener noreferrer">
            <Icon path={LINK} />
            {t("Website")}
            <span class="unseen"> {t("of {name}, opens in a new tab", { name: line.name })}</span>
          </a>
        )}
      </div>
    </li>
  );
}

interface HelplinesProps {
  /** On the card the lines come first, the choice of a country below them. */
  readonly isChoiceLast?: boolean;
  readonly lines: readonly Resource[];
  readonly siteCountry: string;
}

export function Helplines({ lines, siteCountry, isChoiceLast = false }: HelplinesProps) {
  const countries = countriesOf(lines);
  const [country, setCountry] = useState(() =>
    firstCountry(countries, { site: siteCountry, languages: navigator.languages }),
  );
  const shown = linesFor(lines, countries.includes(country) ? country : (countries.at(-1) ?? ""));
  return (
    <div class={isChoiceLast ? "helplines choice-last" : "helplines"}>
      {countries.length > 1 && (
        <label class="country">
          <span>{t("Where you are")}</span>
          <select value={country} onChange={(event) => setCountry(event.currentTarget.value)}>
            {countries.map((code) => (
              <option key={code} value={code}>
                {countryName(code, spokenLocale())}
              </option>
            ))}
          </select>
        </label>
      )}
      <ul class="lines">
        {shown.map((line) => (
          <Line key={`${line.name}-${line.phone}`} line={line} />
        ))}
      </ul>
    </div>
  );
}
