"""Adjectives and adverbs of babel, one per line: English | French | German | Persian | kinds of nouns.

French lists masculine, feminine and the masculine before a vowel; `+` marks adjectives that precede the noun. German
lists a second stem if the endings need one (teuer, teures).
"""

from regard.worlds.babel.lexicon import Adjective, Adverb, adjective, adverb

# Qualities: the outermost adjectives, and the only ones that can be predicates.
_QUALITIES = """
young | + jeune | jung | جوان | person animal
old | + vieux/vieille/vieil | alt | پیر | person animal
old | + vieux/vieille/vieil | alt | قدیمی | thing device text place institution
big | + grand | groß | بزرگ | animal thing device place institution
small | + petit | klein | کوچک | animal thing device place institution food
new | + nouveau/nouvelle/nouvel | neu | جدید | thing device text place institution
beautiful | + beau/belle/bel | schön | زیبا | animal thing place
good | + bon/bonne | gut | خوب | food text
bad | + mauvais | schlecht | بد | food text
long | + long/longue | lang | طولانی | text
rich | riche | reich | ثروتمند | person
famous | célèbre | berühmt | مشهور | person
happy | heureux/heureuse | glücklich | خوشحال | person
tired | fatigué | müde/müd | خسته | person animal
intelligent | intelligent | intelligent | باهوش | person animal
kind | gentil/gentille | freundlich | مهربان | person
sad | triste | traurig | غمگین | person
sick | malade | krank | بیمار | person animal
strong | fort | stark | قوی | person animal
serious | sérieux/sérieuse | ernst | جدی | person
brave | courageux/courageuse | mutig | شجاع | person
curious | curieux/curieuse | neugierig | کنجکاو | person
polite | poli | höflich | مؤدب | person
honest | honnête | ehrlich | صادق | person
hungry | affamé | hungrig | گرسنه | person animal
dangerous | dangereux/dangereuse | gefährlich | خطرناک | animal device
expensive | cher/chère | teuer/teur | گران | thing device food
heavy | lourd | schwer | سنگین | thing device
useful | utile | nützlich | مفید | thing device text institution
strange | étrange | seltsam | عجیب | thing text
simple | simple | einfach | ساده | thing text device institution
rare | rare | selten | کمیاب | thing
fresh | frais/fraîche | frisch | تازه | food
cold | froid | kalt | سرد | food
sweet | sucré | süß | شیرین | food
delicious | délicieux/délicieuse | köstlich | خوشمزه | food
interesting | intéressant | interessant | جالب | text place
short | court | kurz | کوتاه | text
difficult | difficile | schwierig | دشوار | text
important | important | wichtig | مهم | text institution
modern | moderne | modern | مدرن | place device
quiet | tranquille | ruhig | آرام | place
clean | propre | sauber | تمیز | place
dark | sombre | dunkel/dunkl | تاریک | place
powerful | puissant | mächtig | قدرتمند | institution device
complicated | compliqué | kompliziert | پیچیده | institution text device
"""
# Origins.
_ORIGINS = """
French | français | französisch | فرانسوی | person food text place
German | allemand | deutsch | آلمانی | person food text place
Iranian | iranien/iranienne | iranisch | ایرانی | person food text place
Italian | italien/italienne | italienisch | ایتالیایی | person food text place
Spanish | espagnol | spanisch | اسپانیایی | person food text place
Russian | russe | russisch | روسی | person food text place
Chinese | chinois | chinesisch | چینی | person food text place
Japanese | japonais | japanisch | ژاپنی | person food text place
Indian | indien/indienne | indisch | هندی | person food text place
Canadian | canadien/canadienne | kanadisch | کانادایی | person food text place
American | américain | amerikanisch | آمریکایی | person food text place
European | européen/européenne | europäisch | اروپایی | institution
national | national | national | ملی | institution
international | international | international | بین‌المللی | institution
regional | régional | regional | منطقه‌ای | institution
red | rouge | rot | قرمز | thing device
blue | bleu | blau | آبی | thing device
green | vert | grün | سبز | thing device
white | blanc/blanche | weiß | سفید | thing device animal
black | noir | schwarz | سیاه | thing device animal
yellow | jaune | gelb | زرد | thing device
grey | gris | grau | خاکستری | thing device animal
"""
# Fields: the innermost adjectives.
_FIELDS = """
economic | économique | wirtschaftlich | اقتصادی | institution
political | politique | politisch | سیاسی | institution
social | social | sozial | اجتماعی | institution
cultural | culturel/culturelle | kulturell | فرهنگی | institution
scientific | scientifique | wissenschaftlich | علمی | institution text
financial | financier/financière | finanziell | مالی | institution
military | militaire | militärisch | نظامی | institution
industrial | industriel/industrielle | industriell | صنعتی | institution
legal | juridique | rechtlich | حقوقی | institution text
historical | historique | historisch | تاریخی | text
"""


def _table(text: str) -> dict[str, tuple[Adjective, ...]]:
    found: dict[str, list[Adjective]] = {}
    for line in text.strip().splitlines():
        word, kinds = adjective(line)
        for kind in kinds:
            found.setdefault(kind, []).append(word)
    return {kind: tuple(words) for kind, words in found.items()}


QUALITIES, ORIGINS, FIELDS = _table(_QUALITIES), _table(_ORIGINS), _table(_FIELDS)

FREQUENCIES: tuple[Adverb, ...] = tuple(
    adverb(line)
    for line in """
often | souvent | oft | اغلب
always | toujours | immer | همیشه
sometimes | parfois | manchmal | گاهی
rarely | rarement | selten | به‌ندرت
usually | généralement | normalerweise | معمولاً
""".strip().splitlines()
)

# In an adverb of two words, part 2 is the head that part 1 modifies; @ marks a word that only supports the head.
TIMES: dict[str, tuple[Adverb, ...]] = {
    tense: tuple(adverb(line) for line in table.strip().splitlines())
    for tense, table in {
        "past": """
yesterday | hier | gestern | دیروز
last/1 week/2 | @la semaine/2 dernière/1 | letzte/1 Woche/2 | هفتهٔ/2 گذشته/1
last/1 month/2 | @le mois/2 dernier/1 | letzten/1 Monat/2 | ماه/2 گذشته/1
last/1 year/2 | @l' année/2 dernière/1 | letztes/1 Jahr/2 | سال/2 گذشته/1
""",
        "present": """
today | aujourd'hui | heute | امروز
now | maintenant | jetzt | اکنون
every/1 day/2 | chaque/1 jour/2 | jeden/1 Tag/2 | هر/1 روز/2
every/1 week/2 | chaque/1 semaine/2 | jede/1 Woche/2 | هر/1 هفته/2
""",
        "future": """
tomorrow | demain | morgen | فردا
next/1 week/2 | @la semaine/2 prochaine/1 | nächste/1 Woche/2 | هفتهٔ/2 آینده/1
next/1 month/2 | @le mois/2 prochain/1 | nächsten/1 Monat/2 | ماه/2 آینده/1
next/1 year/2 | @l' année/2 prochaine/1 | nächstes/1 Jahr/2 | سال/2 آینده/1
""",
    }.items()
}
