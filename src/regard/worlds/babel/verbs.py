"""Verbs of babel, one per line: English | French | German | Persian | kinds of objects.

English lists an irregular past, and both words of a phrasal verb (turn_on). French lists the infinitive and, for an
irregular verb, the present (je, il, nous, ils), the participle and the stem of the future; `+` marks verbs with être.
German lists the infinitive with its separable prefix (ein|laden), and the third person and participle if irregular; `+`
marks verbs with sein. Persian lists the past and present stems after the noun of a compound verb; `+` marks verbs of
making, getting and giving, whose indefinite objects take no object marker.
"""

# Each verb is one line, however long.
# ruff: noqa: E501

from regard.worlds.babel.lexicon import Verb, verb

_TRANSITIVE = """
see/saw | voir/vois/voit/voyons/voient/vu/verr | sehen/sieht/gesehen | دید/بین | person animal thing text place
hear/heard | entendre/entends/entend/entendons/entendent/entendu/entendr | hören | شنید/شنو | person animal speech
find/found | trouver | finden/findet/gefunden | + پیدا کرد/کن | person animal thing text device
look_for | chercher | suchen | جستجو کرد/کن | person animal thing text device
invite | inviter | ein|laden/lädt/geladen | دعوت کرد/کن | person
meet/met | rencontrer | treffen/trifft/getroffen | ملاقات کرد/کن | person
forget/forgot | oublier | vergessen/vergisst/vergessen | فراموش کرد/کن | person text
encourage | encourager | ermutigen | تشویق کرد/کن | person
kiss | embrasser | küssen | بوسید/بوس | person
wake_up/woke_up | réveiller | auf|wecken | بیدار کرد/کن | person
admire | admirer | bewundern | تحسین کرد/کن | person place institution
punish | punir/punis/punit/punissons/punissent/puni/punir | bestrafen | تنبیه کرد/کن | person
save | sauver | retten | نجات داد/ده | person animal company
buy/bought | acheter/achète/achète/achetons/achètent/acheté/achèter | kaufen | + خرید/خر | animal thing device food book
sell/sold | vendre/vends/vend/vendons/vendent/vendu/vendr | verkaufen | + فروخت/فروش | animal thing device food book
lose/lost | perdre/perds/perd/perdons/perdent/perdu/perdr | verlieren/verliert/verloren | گم کرد/کن | thing letter
bring/brought | apporter | mit|bringen/bringt/gebracht | + آورد/آور | thing food text
repair | réparer | reparieren | تعمیر کرد/کن | thing device
break/broke | casser | zerbrechen/zerbricht/zerbrochen | شکست/شکن | cup glass plate mirror bottle
wash | laver | waschen/wäscht/gewaschen | شست/شوی | animal food cup plate car shirt
clean | nettoyer/nettoie/nettoie/nettoyons/nettoient/nettoyé/nettoier | reinigen | تمیز کرد/کن | thing place
hide/hid | cacher | verstecken | پنهان کرد/کن | thing food text
throw_away/threw_away | jeter/jette/jette/jetons/jettent/jeté/jetter | weg|werfen/wirft/geworfen | دور انداخت/انداز | thing food
turn_on | allumer | ein|schalten | روشن کرد/کن | device
turn_off | éteindre/éteins/éteint/éteignons/éteignent/éteint/éteindr | aus|schalten | خاموش کرد/کن | device
eat/ate | manger | essen/isst/gegessen | + خورد/خور | food
prepare | préparer | vor|bereiten | + آماده کرد/کن | food speech text
taste | goûter | probieren | چشید/چش | food
share | partager | teilen | تقسیم کرد/کن | food
order | commander | bestellen | + سفارش داد/ده | food book
write/wrote | écrire/écris/écrit/écrivons/écrivent/écrit/écrir | schreiben/schreibt/geschrieben | + نوشت/نویس | text
translate | traduire/traduis/traduit/traduisons/traduisent/traduit/traduir | übersetzen/übersetzt/übersetzt | ترجمه کرد/کن | text
understand/understood | comprendre/comprends/comprend/comprenons/comprennent/compris/comprendr | verstehen/versteht/verstanden | فهمید/فهم | text problem
publish | publier | veröffentlichen | منتشر کرد/کن | text
sign | signer | unterschreiben/unterschreibt/unterschrieben | امضا کرد/کن | contract letter document
receive | recevoir/reçois/reçoit/recevons/reçoivent/reçu/recevr | bekommen/bekommt/bekommen | + دریافت کرد/کن | text
correct | corriger | korrigieren | تصحیح کرد/کن | text
explain | expliquer | erklären | توضیح داد/ده | text plan problem law
leave/left | quitter | verlassen/verlässt/verlassen | ترک کرد/کن | place
build/built | construire/construis/construit/construisons/construisent/construit/construir | bauen | + ساخت/ساز | place machine boat
destroy | détruire/détruis/détruit/détruisons/détruisent/détruit/détruir | zerstören | ویران کرد/کن | place machine
describe | décrire/décris/décrit/décrivons/décrivent/décrit/décrir | beschreiben/beschreibt/beschrieben | توصیف کرد/کن | person animal place institution
criticize | critiquer | kritisieren | نقد کرد/کن | text institution
study/studied | étudier | untersuchen | بررسی کرد/کن | text institution
develop | développer | entwickeln | توسعه داد/ده | institution machine
create | créer | schaffen/schafft/geschaffen | + ایجاد کرد/کن | institution
change | changer | ändern | تغییر داد/ده | text institution
reject | rejeter/rejette/rejette/rejetons/rejettent/rejeté/rejetter | ab|lehnen | رد کرد/کن | plan project law program contract
present | présenter | vor|stellen | معرفی کرد/کن | institution book
accept | accepter | an|nehmen/nimmt/genommen | پذیرفت/پذیر | plan project law program contract
analyse | analyser | analysieren | تحلیل کرد/کن | text institution
lead/led | diriger | leiten | اداره کرد/کن | institution school hotel factory
"""
# States occur in the present only, since their past needs another tense in French than that of other verbs.
_STATIVE = """
know/knew | connaître/connais/connaît/connaissons/connaissent/connu/connaîtr | kennen/kennt/gekannt | شناخت/شناس | person place institution
love | aimer | lieben | دوست داشت/دار | person animal place
"""
_INTRANSITIVE = """
sleep/slept | dormir/dors/dort/dormons/dorment/dormi/dormir | schlafen/schläft/geschlafen | خوابید/خواب | animal
work | travailler | arbeiten | کار کرد/کن | person
laugh | rire/ris/rit/rions/rient/ri/rir | lachen | خندید/خند | person
cry/cried | pleurer | weinen | گریه کرد/کن | person
sing/sang | chanter | singen/singt/gesungen | آواز خواند/خوان | person
dance | danser | tanzen | رقصید/رقص | person
swim/swam | nager | + schwimmen/schwimmt/geschwommen | شنا کرد/کن | animal
run/ran | courir/cours/court/courons/courent/couru/courr | + rennen/rennt/gerannt | دوید/دو | animal
wait | attendre/attends/attend/attendons/attendent/attendu/attendr | warten | صبر کرد/کن | person
arrive | + arriver | + an|kommen/kommt/gekommen | رسید/رس | animal
play | jouer | spielen | بازی کرد/کن | animal
smile | sourire/souris/sourit/sourions/sourient/souri/sourir | lächeln | لبخند زد/زن | person
talk | parler | reden | حرف زد/زن | person
travel/travelled | voyager | + reisen | سفر کرد/کن | person
think/thought | réfléchir/réfléchis/réfléchit/réfléchissons/réfléchissent/réfléchi/réfléchir | nach|denken/denkt/gedacht | فکر کرد/کن | person
cook | cuisiner | kochen | آشپزی کرد/کن | person
shout | crier | schreien/schreit/geschrien | فریاد زد/زن | person
stay | + rester | + bleiben/bleibt/geblieben | ماند/مان | animal
fall/fell | + tomber | + hin|fallen/fällt/gefallen | افتاد/افت | animal
pray | prier | beten/betet/gebetet | دعا کرد/کن | person
hesitate | hésiter | zögern | تردید کرد/کن | person
disappear | disparaître/disparais/disparaît/disparaissons/disparaissent/disparu/disparaîtr | + verschwinden/verschwindet/verschwunden | ناپدید شد/شو | animal
"""
_DITRANSITIVE = """
give/gave | donner | geben/gibt/gegeben | + داد/ده | thing book letter food animal
show | montrer | zeigen | + نشان داد/ده | thing text device animal place
send/sent | envoyer/envoie/envoie/envoyons/envoient/envoyé/enverr | schicken | + فرستاد/فرست | thing text
lend/lent | prêter | leihen/leiht/geliehen | + قرض داد/ده | thing book device
sell/sold | vendre/vends/vend/vendons/vendent/vendu/vendr | verkaufen | + فروخت/فروش | thing book device food
bring/brought | apporter | bringen/bringt/gebracht | + آورد/آور | thing text food
"""
_SAYING = """
say/said | dire/dis/dit/disons/disent/dit/dir | sagen | گفت/گوی | clause
think/thought | penser | denken/denkt/gedacht | فکر کرد/کن | clause
know/knew | savoir/sais/sait/savons/savent/su/saur | wissen/weiß/gewusst | دانست/دان | clause
write/wrote | écrire/écris/écrit/écrivons/écrivent/écrit/écrir | schreiben/schreibt/geschrieben | نوشت/نویس | clause
see/saw | voir/vois/voit/voyons/voient/vu/verr | sehen/sieht/gesehen | دید/بین | clause
hear/heard | entendre/entends/entend/entendons/entendent/entendu/entendr | hören | شنید/شنو | clause
explain | expliquer | erklären | توضیح داد/ده | clause
announce | annoncer | an|kündigen | اعلام کرد/کن | clause
claim | affirmer | behaupten | ادعا کرد/کن | clause
"""


def _table(text: str) -> tuple[tuple[Verb, tuple[str, ...]], ...]:
    return tuple(verb(line) for line in text.strip().splitlines())


TRANSITIVE, STATIVE = _table(_TRANSITIVE), _table(_STATIVE)
INTRANSITIVE, DITRANSITIVE, SAYING = _table(_INTRANSITIVE), _table(_DITRANSITIVE), _table(_SAYING)
