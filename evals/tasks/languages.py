"""Eight languages: templates of the questions, and the words that answers are made of.

Forms of a word are separated by ``|``; the first is the one that questions show. A ``*`` stands
for the language's endings. Keys are English and the same in every language; numbers, in digits.
The month of May is left out everywhere ("may" is an English verb), as is the number 1 (in half of
the languages an article).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

Words = Mapping[str, str]
"""Key to forms."""

_HAN_NUMERALS = "零〇一二两三四五六七八九十百"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Language:
    """One language of the task."""

    code: str
    """ISO 639-1."""
    instruction: str
    """How to answer."""
    templates: Mapping[str, str]
    """By kind of question."""
    things: Words
    """Things that have a colour."""
    words: Mapping[str, Words]
    """``numbers``, ``days``, ``months``, ``colours`` and ``adjectives``."""
    shots: tuple[tuple[str, str], ...]
    """Solved questions, none of them an item."""
    endings: str = ""
    """Pattern of what ``*`` stands for."""
    spaced: bool = True
    """False where words are not separated by spaces."""

    def show(self, key: str) -> str:
        """Return the word or thing of ``key`` as questions show it; ``key`` if it has none."""
        kinds = (words for kind, words in self.words.items() if kind != "numbers")
        for words in (self.things, *kinds):
            if key in words:
                return words[key].partition("|")[0]
        return key

    def find(self, kind: str, text: str, *, digits: bool = False) -> frozenset[str]:
        """Return the keys of the words of ``kind`` that ``text`` mentions.

        Args:
            kind: A key of ``words``.
            text: Any text.
            digits: Whether numbers in digits count as words of ``numbers``.
        """
        folded = fold(text)
        pattern, keys = _pattern(self, kind)
        found = {keys[(match.lastindex or 1) - 1] for match in pattern.finditer(folded)}
        if digits and kind == "numbers":
            found |= set(re.findall(r"(?<![\d.,])\d+(?![\d]|[.,]\d)", folded, re.ASCII))
        return frozenset(found)


def fold(text: str) -> str:
    """Return ``text`` composed, without case, and with Russian ё written as е."""
    return unicodedata.normalize("NFC", text).casefold().replace("ё", "е")


@cache
def _pattern(language: Language, kind: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return the pattern of the words of ``kind``, and the key of each of its groups.

    A form counts only as a whole word, and a hyphen is part of one: "dix-sept" is no "dix". In
    Chinese only numerals have such edges: 二十 is no 十.
    """
    forms = [
        (fold(form), key)
        for key, all_forms in language.words[kind].items()
        for form in all_forms.split("|")
    ]
    edge = r"\w-" if language.spaced else rf"\d{_HAN_NUMERALS}"
    options = ["(" + re.escape(form).replace("\\*", language.endings) + ")" for form, _ in forms]
    pattern = re.compile(f"(?<![{edge}])(?:{'|'.join(options)})(?![{edge}])")
    return pattern, tuple(key for _, key in forms)


NUMBER_KEYS = (*(str(number) for number in range(2, 21)), *(str(n) for n in range(30, 101, 10)))

DAY_KEYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

MONTH_KEYS = (
    "january", "february", "march", "april", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip

COLOUR_KEYS = (
    "white", "black", "grey", "red", "green", "blue", "yellow", "orange", "purple", "pink",
)  # fmt: skip

ADJECTIVE_KEYS = (
    "hot", "cold", "big", "small", "long", "short", "full", "empty", "heavy", "light", "slow",
    "fast", "wet", "dry", "rich", "poor", "hard", "soft",
)  # fmt: skip

THING_KEYS = ("grass", "snow", "blood", "banana", "coal", "milk", "tomato", "broccoli")


def _lexicon(
    *, numbers: str, days: str, months: str, colours: str, adjectives: str
) -> dict[str, Words]:
    """Return the words by kind and key; each text has the words in the order of the keys."""
    return {
        "numbers": dict(zip(NUMBER_KEYS, numbers.split(), strict=True)),
        "days": dict(zip(DAY_KEYS, days.split(), strict=True)),
        "months": dict(zip(MONTH_KEYS, months.split(), strict=True)),
        "colours": dict(zip(COLOUR_KEYS, colours.split(), strict=True)),
        "adjectives": dict(zip(ADJECTIVE_KEYS, adjectives.split(), strict=True)),
    }


def _things(things: str) -> Words:
    """Return the things in the order of their keys, with the article that a question wants."""
    return dict(zip(THING_KEYS, things.split(" | "), strict=True))


ENGLISH = Language(
    code="en",
    instruction="Answer with one short sentence in English. Write numbers as words.",
    templates={
        "sum": "How much is {a} plus {b}?",
        "tomorrow": "Today is {day}. What day is tomorrow?",
        "opposite": "What is the opposite of “{word}”?",
        "colour": "What colour is {thing}?",
        "two_steps": "How much is {a} plus {b} minus {c}?",
        "days_ago": "Today is {day}. What day was it {k} days ago?",
        "months_on": "It is {month}. What month will it be in {k} months?",
        "mix": "Which colour do you get when you mix {x} and {y}?",
    },
    things=_things("grass | snow | blood | a ripe banana | coal | milk | a ripe tomato | broccoli"),
    words=_lexicon(
        numbers="two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy "
        "eighty ninety hundred",
        days="Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        months="January February March April June July August September October November December",
        colours="white black grey|gray red green blue yellow orange purple|violet pink",
        adjectives="hot cold big|large small|little long short|brief full empty heavy light slow "
        "fast|quick wet dry rich|wealthy poor hard soft",
    ),
    shots=(
        ("What colour is the clear sky?", "The clear sky is blue."),
        ("How much is 10 plus 10?", "Ten plus ten is twenty."),
    ),
)

GERMAN = Language(
    code="de",
    instruction="Antworte mit einem kurzen Satz auf Deutsch. Schreibe Zahlen als Wörter.",
    templates={
        "sum": "Wie viel ist {a} plus {b}?",
        "tomorrow": "Heute ist {day}. Welcher Tag ist morgen?",
        "opposite": "Was ist das Gegenteil von „{word}“?",
        "colour": "Welche Farbe hat {thing}?",
        "two_steps": "Wie viel ist {a} plus {b} minus {c}?",
        "days_ago": "Heute ist {day}. Welcher Tag war vor {k} Tagen?",
        "months_on": "Es ist {month}. Welcher Monat ist in {k} Monaten?",
        "mix": "Welche Farbe entsteht, wenn man {x} und {y} mischt?",
    },
    things=_things(
        "Gras | Schnee | Blut | eine reife Banane | Kohle | Milch | eine reife Tomate | Brokkoli"
    ),
    words=_lexicon(
        numbers="zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
        "fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig "
        "siebzig achtzig neunzig hundert|einhundert",
        days="Montag Dienstag Mittwoch Donnerstag Freitag Samstag|Sonnabend Sonntag",
        months="Januar|Jänner Februar März April Juni Juli August September Oktober November "
        "Dezember",
        colours="Weiß|weiß* Schwarz|schwarz* Grau|grau* Rot|rot* Grün|grün* Blau|blau* Gelb|gelb* "
        "Orange|orange* Lila|violett* Rosa|pink*",
        adjectives="heiß|heiß* kalt|kalt* groß|groß* klein|klein* lang|lang* kurz|kurz* voll|voll* "
        "leer|leer* schwer|schwer* leicht|leicht* langsam|langsam* schnell|schnell* nass|nass* "
        "trocken|trocken* reich|reich* arm|arm* hart|hart* weich|weich*",
    ),
    shots=(
        ("Welche Farbe hat der klare Himmel?", "Der klare Himmel ist blau."),
        ("Wie viel ist 10 plus 10?", "Zehn plus zehn ist zwanzig."),
    ),
    endings="(?:e[nrsm]?)?",
)

FRENCH = Language(
    code="fr",
    instruction="Réponds par une phrase courte en français. Écris les nombres en lettres.",
    templates={
        "sum": "Combien font {a} plus {b} ?",
        "tomorrow": "Aujourd'hui, nous sommes {day}. Quel jour serons-nous demain ?",
        "opposite": "Quel est le contraire de « {word} » ?",
        "colour": "De quelle couleur est {thing} ?",
        "two_steps": "Combien font {a} plus {b} moins {c} ?",
        "days_ago": "Aujourd'hui, nous sommes {day}. Quel jour étions-nous il y a {k} jours ?",
        "months_on": "Nous sommes en {month}. En quel mois serons-nous dans {k} mois ?",
        "mix": "Quelle couleur obtient-on en mélangeant du {x} et du {y} ?",
    },
    things=_things(
        "l'herbe | la neige | le sang | une banane mûre | "
        "le charbon | le lait | une tomate mûre | le brocoli"
    ),
    words=_lexicon(
        numbers="deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze "
        "seize dix-sept dix-huit dix-neuf vingt trente quarante cinquante soixante soixante-dix "
        "quatre-vingts|quatre-vingt quatre-vingt-dix cent",
        days="lundi mardi mercredi jeudi vendredi samedi dimanche",
        months="janvier février mars avril juin juillet août|aout septembre octobre novembre "
        "décembre",
        colours="blanc|blanc*|blanche* noir|noir* gris|gris* rouge|rouge* vert|vert* bleu|bleu* "
        "jaune|jaune* orange|orange* violet|violet*|violette*|pourpre*|mauve* rose|rose*",
        adjectives="chaud|chaud* froid|froid* grand|grand*|gros|gros* petit|petit* "
        "long|long*|longue* court|court*|bref plein|plein* vide|vide* lourd|lourd* "
        "léger|légers|légère* lent|lent* rapide|rapide*|vite mouillé|mouillé*|humide* "
        "sec|secs|sèche* riche|riche* pauvre|pauvre* dur|dur* mou|mous|molle*|doux|douce*",
    ),
    shots=(
        ("De quelle couleur est le ciel clair ?", "Le ciel clair est bleu."),
        ("Combien font 10 plus 10 ?", "Dix plus dix font vingt."),
    ),
    endings="(?:es?|s)?",
)

SPANISH = Language(
    code="es",
    instruction="Responde con una frase corta en español. Escribe los números con letras.",
    templates={
        "sum": "¿Cuánto es {a} más {b}?",
        "tomorrow": "Hoy es {day}. ¿Qué día es mañana?",
        "opposite": "¿Qué es lo contrario de «{word}»?",
        "colour": "¿De qué color es {thing}?",
        "two_steps": "¿Cuánto es {a} más {b} menos {c}?",
        "days_ago": "Hoy es {day}. ¿Qué día fue hace {k} días?",
        "months_on": "Estamos en {month}. ¿En qué mes estaremos dentro de {k} meses?",
        "mix": "¿Qué color se obtiene al mezclar {x} y {y}?",
    },
    things=_things(
        "la hierba | la nieve | la sangre | un plátano maduro | "
        "el carbón | la leche | un tomate maduro | el brócoli"
    ),
    words=_lexicon(
        numbers="dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
        "dieciséis|dieciseis diecisiete dieciocho diecinueve veinte treinta cuarenta cincuenta "
        "sesenta setenta ochenta noventa cien|ciento",
        days="lunes martes miércoles|miercoles jueves viernes sábado|sabado domingo",
        months="enero febrero marzo abril junio julio agosto septiembre|setiembre octubre "
        "noviembre diciembre",
        colours="blanco|blanc* negro|negr* gris|gris* rojo|roj* verde|verde* azul|azul* "
        "amarillo|amarill* naranja|naranja*|anaranjad* morado|morad*|violeta*|púrpura* "
        "rosa|rosa*|rosad*",
        adjectives="caliente|caliente*|cálid* frío|frí*|fri* grande|grande* pequeño|pequeñ*|chic* "
        "largo|larg* corto|cort*|breve* lleno|llen* vacío|vací*|vaci* pesado|pesad* "
        "ligero|liger*|livian*|leve* lento|lent* rápido|rápid*|rapid*|veloz mojado|mojad*|húmed* "
        "seco|sec* rico|ric* pobre|pobre* duro|dur* blando|bland*|suave*",
    ),
    shots=(
        ("¿De qué color es el cielo despejado?", "El cielo despejado es azul."),
        ("¿Cuánto es 10 más 10?", "Diez más diez es veinte."),
    ),
    endings="(?:[oae]?s?)",
)

ITALIAN = Language(
    code="it",
    instruction="Rispondi con una frase breve in italiano. Scrivi i numeri in lettere.",
    templates={
        "sum": "Quanto fa {a} più {b}?",
        "tomorrow": "Oggi è {day}. Che giorno è domani?",
        "opposite": "Qual è il contrario di «{word}»?",
        "colour": "Di che colore è {thing}?",
        "two_steps": "Quanto fa {a} più {b} meno {c}?",
        "days_ago": "Oggi è {day}. Che giorno era {k} giorni fa?",
        "months_on": "È {month}. Che mese sarà tra {k} mesi?",
        "mix": "Quale colore si ottiene mescolando {x} e {y}?",
    },
    things=_things(
        "l'erba | la neve | il sangue | una banana matura | "
        "il carbone | il latte | un pomodoro maturo | il broccolo"
    ),
    words=_lexicon(
        numbers="due tre quattro cinque sei sette otto nove dieci undici dodici tredici "
        "quattordici quindici sedici diciassette diciotto diciannove venti trenta quaranta "
        "cinquanta sessanta settanta ottanta novanta cento",
        days="lunedì martedì mercoledì giovedì venerdì sabato domenica",
        months="gennaio febbraio marzo aprile giugno luglio agosto settembre ottobre novembre "
        "dicembre",
        colours="bianco|bianc* nero|ner* grigio|grigi* rosso|ross* verde|verd* blu|azzurr* "
        "giallo|giall* arancione|arancion* viola|porpora rosa",
        adjectives="caldo|cald* freddo|fredd* grande|grand* piccolo|piccol* lungo|lung* "
        "corto|cort*|brev* pieno|pien* vuoto|vuot* pesante|pesant* leggero|legger* lento|lent* "
        "veloce|veloc*|rapid* bagnato|bagnat*|umid* asciutto|asciutt*|secco|secc* ricco|ricc* "
        "povero|pover* duro|dur* morbido|morbid*|molle|molli|soffic*",
    ),
    shots=(
        ("Di che colore è il cielo sereno?", "Il cielo sereno è azzurro."),
        ("Quanto fa 10 più 10?", "Dieci più dieci fa venti."),
    ),
    endings="(?:h?[ei]|[oa])",
)

PORTUGUESE = Language(
    code="pt",
    instruction="Responda com uma frase curta em português. Escreva os números por extenso.",
    templates={
        "sum": "Quanto é {a} mais {b}?",
        "tomorrow": "Hoje é {day}. Que dia é amanhã?",
        "opposite": "Qual é o contrário de “{word}”?",
        "colour": "De que cor é {thing}?",
        "two_steps": "Quanto é {a} mais {b} menos {c}?",
        "days_ago": "Hoje é {day}. Que dia foi há {k} dias?",
        "months_on": "Estamos em {month}. Em que mês estaremos daqui a {k} meses?",
        "mix": "Que cor se obtém ao misturar {x} e {y}?",
    },
    things=_things(
        "a grama | a neve | o sangue | uma banana madura | "
        "o carvão | o leite | um tomate maduro | o brócolis"
    ),
    words=_lexicon(
        numbers="dois|duas três|tres quatro cinco seis sete oito nove dez onze doze treze "
        "catorze|quatorze quinze dezesseis|dezasseis dezessete|dezassete dezoito "
        "dezenove|dezanove vinte trinta quarenta cinquenta sessenta setenta oitenta noventa "
        "cem|cento",
        days="segunda-feira|segunda terça-feira|terça quarta-feira|quarta quinta-feira|quinta "
        "sexta-feira|sexta sábado|sabado domingo",
        months="janeiro fevereiro março abril junho julho agosto setembro outubro novembro "
        "dezembro",
        colours="branco|branc* preto|pret*|negr* cinza|cinza*|cinzent* vermelho|vermelh* "
        "verde|verde* azul|azul*|azuis amarelo|amarel* laranja|laranja*|alaranjad* "
        "roxo|rox*|violeta*|púrpura* rosa|rosa*|cor-de-rosa",
        adjectives="quente|quente* frio|fri* grande|grande* pequeno|pequen* longo|long*|comprid* "
        "curto|curt*|breve* cheio|chei* vazio|vazi* pesado|pesad* leve|leve* "
        "lento|lent*|devagar rápido|rápid*|rapid*|veloz molhado|molhad*|úmid* seco|sec* "
        "rico|ric* pobre|pobre* duro|dur* mole|mole*|maci*|suave*",
    ),
    shots=(
        ("De que cor é o céu limpo?", "O céu limpo é azul."),
        ("Quanto é 10 mais 10?", "Dez mais dez é vinte."),
    ),
    endings="(?:[oae]?s?)",
)

CHINESE = Language(
    code="zh",
    instruction="请用一句简短的中文回答，数字请用汉字书写。",
    templates={
        "sum": "{a}加{b}等于多少？",
        "tomorrow": "今天是{day}，明天是星期几？",
        "opposite": "“{word}”的反义词是什么？",
        "colour": "{thing}是什么颜色的？",
        "two_steps": "{a}加{b}减{c}等于多少？",
        "days_ago": "今天是{day}，{k}天前是星期几？",
        "months_on": "现在是{month}，{k}个月后是几月？",
        "mix": "{x}和{y}混合在一起是什么颜色？",
    },
    things=_things("草 | 雪 | 血 | 成熟的香蕉 | 煤 | 牛奶 | 成熟的番茄 | 西兰花"),
    words=_lexicon(
        numbers="二|两 三 四 五 六 七 八 九 十 十一 十二 十三 十四 十五 十六 十七 十八 十九 二十 "
        "三十 四十 五十 六十 七十 八十 九十 一百|百",
        days="星期一|周一|礼拜一 星期二|周二|礼拜二 星期三|周三|礼拜三 星期四|周四|礼拜四 "
        "星期五|周五|礼拜五 星期六|周六|礼拜六 星期日|星期天|周日|礼拜日|礼拜天",
        months="一月|1月 二月|2月 三月|3月 四月|4月 六月|6月 七月|7月 八月|8月 九月|9月 "
        "十月|10月 十一月|11月 十二月|12月",
        colours="白色|白的|纯白|雪白|洁白|乳白 黑色|黑的 灰色|灰的 红色|红的|鲜红 绿色|绿的|翠绿 "
        "蓝色|蓝的 黄色|黄的 橙色|橙的|橘色 紫色|紫的 粉红色|粉红|粉色",
        adjectives="热|炎热 冷|寒冷 大 小 长 短 满 空 重 轻 慢 快 湿 干 富有|富裕|富 "
        "贫穷|贫困|穷|贫 硬|坚硬 软|柔软",
    ),
    shots=(
        ("晴朗的天空是什么颜色的？", "晴朗的天空是蓝色的。"),
        ("10加10等于多少？", "十加十等于二十。"),
    ),
    spaced=False,
)

RUSSIAN = Language(
    code="ru",
    instruction="Ответь одним коротким предложением на русском языке. Пиши числа словами.",
    templates={
        "sum": "Сколько будет {a} плюс {b}?",
        "tomorrow": "Сегодня {day}. Какой день недели будет завтра?",
        "opposite": "Какой антоним у слова «{word}»?",
        "colour": "Какого цвета {thing}?",
        "two_steps": "Сколько будет {a} плюс {b} минус {c}?",
        "days_ago": "Сегодня {day}. Какой день недели был {k} дня назад?",
        "months_on": "Сейчас {month}. Какой месяц будет через {k} месяца?",
        "mix": "Какой цвет получится, если смешать {x} и {y}?",
    },
    things=_things(
        "трава | снег | кровь | спелый банан | уголь | молоко | спелый помидор | брокколи"
    ),
    words=_lexicon(
        numbers="два|две три четыре пять шесть семь восемь девять десять одиннадцать двенадцать "
        "тринадцать четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать "
        "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто сто",
        days="понедельник|понедельник* вторник|вторник* среда|сред* четверг|четверг* "
        "пятница|пятниц* суббота|суббот* воскресенье|воскресень*",
        months="январь|январ* февраль|феврал* март|март* апрель|апрел* июнь|июн* июль|июл* "
        "август|август* сентябрь|сентябр* октябрь|октябр* ноябрь|ноябр* декабрь|декабр*",
        colours="белый|бел* чёрный|чёрн* серый|сер* красный|красн* зелёный|зелён* "
        "синий|син*|голуб* жёлтый|жёлт* оранжевый|оранжев* фиолетовый|фиолетов*|пурпурн* "
        "розовый|розов*",
        adjectives="горячий|горяч*|жарк* холодный|холодн* большой|больш* маленький|маленьк*|мал* "
        "длинный|длинн* короткий|коротк* полный|полн* пустой|пуст* тяжёлый|тяжёл* лёгкий|лёгк* "
        "медленный|медленн* быстрый|быстр* мокрый|мокр* сухой|сух* богатый|богат* "
        "бедный|бедн* твёрдый|твёрд*|жёстк* мягкий|мягк*",
    ),
    shots=(
        ("Какого цвета ясное небо?", "Ясное небо голубого цвета."),
        ("Сколько будет 10 плюс 10?", "Десять плюс десять будет двадцать."),
    ),
    endings="[а-я]{0,3}",
)

LANGUAGES: Mapping[str, Language] = {
    language.code: language
    for language in (
        ENGLISH, GERMAN, FRENCH, SPANISH, ITALIAN, PORTUGUESE, CHINESE, RUSSIAN,
    )
}  # fmt: skip
"""By code."""
