<?php
// work.php: every extension that is there gets something to do; what it prints is the same on every run.
$names = get_loaded_extensions();
sort($names);
echo implode(' ', $names), "\n";
$sum = 0;
for ($i = 0; $i < 20000; $i++) {
    $list = array_fill(0, $i % 50 + 1, str_repeat('x', $i % 97));
    $sum += strlen(implode(',', $list));
}
echo $sum, ' ', md5(json_encode(range(1, 5000))), "\n";
if (extension_loaded('dom')) {
    $document = new DOMDocument();
    $root = $document->appendChild($document->createElement('rows'));
    for ($i = 0; $i < 2000; $i++) {
        $row = $root->appendChild($document->createElement('row', "text $i"));
        $row->setAttribute('number', (string)$i);
    }
    $again = new DOMDocument();
    $again->loadXML($document->saveXML());
    echo (new DOMXPath($again))->query('//row[@number > 1000]')->length, "\n";
}
if (extension_loaded('mbstring'))
    echo md5(mb_convert_encoding(str_repeat("\u{00e9}\u{6f22}", 5000), 'UTF-16', 'UTF-8')), "\n";
if (extension_loaded('intl')) {
    $collator = new Collator('de_DE');
    $words = ['Zebra', 'Äpfel', 'apfel', 'Öl', 'ofen'];
    $collator->sort($words);
    echo implode(' ', $words), ' ', (new NumberFormatter('de_DE', NumberFormatter::SPELLOUT))->format(4711), "\n";
}
if (extension_loaded('pdo_sqlite')) {
    $base = new PDO('sqlite::memory:');
    $base->exec('create table t (a integer, b text)');
    $insert = $base->prepare('insert into t values (?, ?)');
    for ($i = 0; $i < 2000; $i++)
        $insert->execute([$i, str_repeat(chr(97 + $i % 26), $i % 300)]);
    echo $base->query('select sum(length(b)) from t')->fetchColumn(), "\n";
}
if (extension_loaded('mysqli')) {
    mysqli_report(MYSQLI_REPORT_OFF);
    $link = mysqli_init();
    echo @$link->real_connect('127.0.0.1', 'nobody', '', '', 1) ? 'connected' : 'refused', "\n";
}
if (extension_loaded('curl')) {
    $request = curl_init('http://127.0.0.1:1/');
    curl_setopt($request, CURLOPT_RETURNTRANSFER, true);
    var_dump(curl_exec($request));
    echo curl_errno($request), "\n";
}
if (extension_loaded('gd')) {
    $image = imagecreatetruecolor(200, 200);
    imagefilledellipse($image, 100, 100, 150, 90, 0xff8800);
    ob_start();
    imagepng($image);
    echo strlen(ob_get_clean()) > 100 ? 'drawn' : 'empty', "\n";
}
